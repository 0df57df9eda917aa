//! What the frames of a stack stand on: nodes for the thread, the labels, and the frames that were left out.

use super::capture::{Capture, announce};
use super::contexts::Origin;
use super::keys::Function;
use memprofiler_core::labels::LabelSet;
use memprofiler_core::stack_tree::{Node, StackId};
use rb_sys::VALUE;
use std::sync::Arc;

/// The most label sets at a time.
const MAX_LABEL_SETS: usize = 10_000;

impl Capture {
    /// What stacks of this origin stand on, with one reference for the caller.
    #[cold]
    pub(super) fn base(&mut self, origin: Origin, holder: VALUE) -> StackId {
        let mut base = StackId::EMPTY;
        if origin.thread != 0 {
            let (thread, new) = self.stacks.extend(base, Function::Thread(origin.thread).key(), 0);
            if new {
                announce(&self.stacks, thread, &self.keepers, &mut self.pins, holder);
            }
            base = thread;
        }
        let Some(labels) = origin.labels else { return base };
        let labelled = self.labelled(base, labels);
        self.stacks.release(base);
        labelled
    }

    /// What stacks with these labels stand on, in addition to `base`; with one reference for the caller.
    pub fn labelled(&mut self, base: StackId, labels: &Arc<LabelSet>) -> StackId {
        let id = match self.labels.find(labels) {
            Some(id) => id,
            None if self.labels.len() < MAX_LABEL_SETS => self.labels.id(Arc::clone(labels)),
            None => {
                self.label_overflows += 1;
                let mut overflow = LabelSet::default();
                overflow.set("labels", Some("(not kept)"));
                self.labels.id(Arc::new(overflow))
            }
        };
        self.stacks.extend(base, Function::Labels(id).key(), 0).0
    }

    /// `stack` on another base, which may be the empty stack; with one reference for the caller.
    pub fn on_base(&mut self, base: StackId, mut stack: StackId) -> StackId {
        if base == StackId::EMPTY {
            return self.stacks.retained(stack);
        }
        let mut chain = Vec::new();
        while let Some(node) = self.stacks.node(stack) {
            chain.push(node);
            stack = node.parent;
        }
        chain.into_iter().rev().fold(self.stacks.retained(base), |caller, node| {
            let key = self.stacks.function_key(node.function);
            let (callee, _) = self.stacks.extend(caller, key, node.position);
            self.stacks.release(caller);
            callee
        })
    }

    /// What a stack that lacks its outer frames stands on; takes over the caller's reference to `base`.
    #[cold]
    pub(super) fn truncated(&mut self, base: StackId) -> StackId {
        let (truncated, _) = self.stacks.extend(base, Function::Named(self.truncated).key(), 0);
        self.stacks.release(base);
        truncated
    }

    /// The stack of a lone frame that stands for `stack`, whose origin it keeps; with one reference for the caller.
    pub fn lost(&mut self, mut stack: StackId) -> StackId {
        while let Some(node) = self.stacks.node(stack) {
            if matches!(self.function(node.function), Function::Labels(_) | Function::Thread(_)) {
                break;
            }
            stack = node.parent;
        }
        self.stacks.extend(stack, Function::Named(self.lost).key(), 0).0
    }

    /// The names of the frames that stand for others, whether a stack has them or not.
    pub fn placeholders(&self) -> [u32; 2] {
        [self.truncated, self.lost]
    }

    /// Whether a node is not a frame but what the frames of some stacks stand on.
    pub fn is_base(&self, node: Node) -> bool {
        match self.function(node.function) {
            Function::Labels(_) | Function::Thread(_) => true,
            Function::Named(name) => name == self.truncated,
            _ => false,
        }
    }
}
