//! How many stacks there are, and how much memory they take.

use super::{FrameKind, Stacks};
use crate::vm::names::FunctionName;
use memprofiler_core::labels::LabelSet;
use rb_sys::VALUE;

impl Stacks {
    /// The number of nodes.
    pub fn node_count(&self) -> usize {
        self.tree.len()
    }

    /// The number of functions in the stacks.
    pub fn function_count(&self) -> usize {
        self.tree.function_count()
    }

    /// The number of functions that are not known by name yet, and keep the VM's objects or a deferred stack alive.
    pub fn unnamed_count(&self) -> usize {
        let keys = self.tree.function_keys_of(0..usize::MAX);
        let named = |key| matches!(FrameKind::of(key), FrameKind::Named(_) | FrameKind::Labels(_) | FrameKind::Span(_));
        keys.filter(|&key| !named(key)).count()
    }

    /// The number of label sets.
    pub fn label_set_count(&self) -> usize {
        self.labels.len()
    }

    /// How often labels were not kept because there were too many sets.
    pub fn label_overflows(&self) -> u64 {
        self.label_overflows
    }

    /// Bytes held, except by the names of functions.
    pub fn bytes(&self) -> usize {
        self.tree.bytes()
            + self.contexts.bytes()
            + self.deferred.bytes()
            + self.labels.bytes(LabelSet::bytes)
            + self.exemplars.bytes()
            + self.buffer.0.capacity() * size_of::<VALUE>()
            + self.buffer.1.capacity() * size_of::<i32>()
    }

    /// Bytes held by the names of functions.
    pub fn name_bytes(&self) -> usize {
        self.function_names.bytes(|name| size_of::<FunctionName>() + name.name.len() + name.file.len())
    }
}
