//! How many stacks there are, and what they take.

use super::{FrameKind, Stacks};
use crate::vm::names::FunctionName;
use memprofiler_core::labels::LabelSet;
use rb_sys::VALUE;

impl Stacks {
    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        self.tree.len()
    }

    /// How many functions the stacks have.
    pub fn function_count(&self) -> usize {
        self.tree.function_count()
    }

    /// How many functions are not known by name yet, and keep the VM's objects alive, or a deferred stack.
    pub fn unnamed_count(&self) -> usize {
        let keys = self.tree.function_keys_of(0..usize::MAX);
        keys.filter(|&key| !matches!(FrameKind::of(key), FrameKind::Named(_) | FrameKind::Labels(_))).count()
    }

    /// How many label sets there are.
    pub fn label_set_count(&self) -> usize {
        self.labels.len()
    }

    /// How often labels were not kept because there were too many sets.
    pub fn label_overflows(&self) -> u64 {
        self.label_overflows
    }

    /// Bytes held, but for the names of functions.
    pub fn bytes(&self) -> usize {
        self.tree.bytes()
            + self.contexts.bytes()
            + self.deferred.bytes()
            + self.labels.bytes(LabelSet::bytes)
            + self.buffer.0.capacity() * size_of::<VALUE>()
            + self.buffer.1.capacity() * size_of::<i32>()
    }

    /// Bytes held by the names of functions.
    pub fn name_bytes(&self) -> usize {
        self.function_names.bytes(|name| size_of::<FunctionName>() + name.name.len() + name.file.len())
    }
}
