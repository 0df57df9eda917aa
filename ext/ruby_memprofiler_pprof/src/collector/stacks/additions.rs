//! What is added to stacks besides frames that were read.

use super::{FrameKind, Stacks};
use crate::vm::names::FunctionName;
use memprofiler_core::labels::LabelSet;
use memprofiler_core::stack_tree::StackId;
use std::sync::Arc;

impl Stacks {
    /// `stack` with one more frame at its inner end, which stands for no function; with one reference for the caller.
    pub fn with_frame(&mut self, stack: StackId, name: &str) -> StackId {
        let id = self.function_names.id(Arc::new(FunctionName::pseudo(name)));
        self.tree.extend(stack, FrameKind::Named(id).key(), 0).0
    }

    /// `stack` with one more label; with one reference for the caller.
    pub fn with_label(&mut self, stack: StackId, key: &str, value: &str) -> StackId {
        self.labelled(stack, &Arc::new(LabelSet::of(key, value)))
    }
}
