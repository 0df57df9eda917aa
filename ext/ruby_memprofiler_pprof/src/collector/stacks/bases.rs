//! The base of a stack: nodes for the thread, the labels, and the frames that were left out.

use super::references::announce;
use super::{FrameKind, Origin, Stacks};
use crate::collector::pins::Holder;
use memprofiler_core::labels::LabelSet;
use memprofiler_core::stack_tree::{Node, StackId};
use std::sync::Arc;

/// The maximum number of label sets at a time.
const MAX_LABEL_SETS: usize = 10_000;

impl Stacks {
    /// The base of stacks of this origin, with one reference for the caller.
    #[cold]
    pub(super) fn base(&mut self, origin: Origin, holder: &mut Holder) -> StackId {
        let mut base = StackId::EMPTY;
        if origin.thread != 0 {
            let (thread, new) = self.tree.extend(base, FrameKind::Thread(origin.thread).key(), 0);
            if new {
                announce(&self.tree, thread, &self.keepers, holder);
            }
            base = thread;
        }
        let Some(labels) = origin.labels else { return base };
        let labelled = self.labelled(base, labels);
        self.tree.release(base);
        labelled
    }

    /// The base of stacks with these labels, on top of `base`; with one reference for the caller.
    pub(super) fn labelled(&mut self, base: StackId, labels: &Arc<LabelSet>) -> StackId {
        let id = self.labels_id(labels);
        self.tree.extend(base, FrameKind::Labels(id).key(), 0).0
    }

    /// The number of these labels, or of those that stand for them.
    pub(super) fn labels_id(&mut self, labels: &Arc<LabelSet>) -> u32 {
        match self.labels.find(labels) {
            Some(id) => id,
            None if self.labels.len() < MAX_LABEL_SETS => self.labels.id(Arc::clone(labels)),
            None => {
                self.label_overflows += 1;
                self.labels_not_kept()
            }
        }
    }

    /// The number of the labels that stand for those that were not kept.
    fn labels_not_kept(&mut self) -> u32 {
        self.labels.id(Arc::new(LabelSet::of("labels", "(not kept)")))
    }

    /// `stack` on another base, which may be the empty stack; with one reference for the caller.
    pub(super) fn on_base(&mut self, base: StackId, mut stack: StackId) -> StackId {
        if base == StackId::EMPTY {
            return self.tree.retained(stack);
        }
        let mut chain = Vec::new();
        while let Some(node) = self.tree.node(stack) {
            chain.push(node);
            stack = node.parent;
        }
        chain.into_iter().rev().fold(self.tree.retained(base), |caller, node| {
            let key = self.tree.function_key(node.function);
            let (callee, _) = self.tree.extend(caller, key, node.position);
            self.tree.release(caller);
            callee
        })
    }

    /// The base of a stack without its outer frames; takes over the caller's reference to `base`.
    #[cold]
    pub(super) fn truncated(&mut self, base: StackId) -> StackId {
        let (truncated, _) = self.tree.extend(base, FrameKind::Named(self.truncated).key(), 0);
        self.tree.release(base);
        truncated
    }

    /// Exchanges the caller's reference to `stack` for one to a single frame that stands for it; keeps its origin.
    pub fn lose(&mut self, stack: StackId) -> StackId {
        let origin = self.origin(stack);
        let (lost, _) = self.tree.extend(origin, FrameKind::Named(self.lost).key(), 0);
        self.tree.release(stack);
        lost
    }

    /// Does the same, but all origins become one, which stands for labels that were not kept.
    pub fn lose_with_origin(&mut self, stack: StackId) -> StackId {
        if self.origin(stack) == StackId::EMPTY {
            return self.lose(stack);
        }
        let labels = FrameKind::Labels(self.labels_not_kept()).key();
        let (base, _) = self.tree.extend(StackId::EMPTY, labels, 0);
        if self.origin(stack) != base {
            self.label_overflows += 1;
        }
        let (lost, _) = self.tree.extend(base, FrameKind::Named(self.lost).key(), 0);
        self.tree.release(base);
        self.tree.release(stack);
        lost
    }

    /// Whether `stack` has no frames.
    pub fn is_bare(&self, stack: StackId) -> bool {
        self.origin(stack) == stack
    }

    /// The part of `stack` that says whose it is: the nodes for the thread and the labels, or the empty stack.
    fn origin(&self, mut stack: StackId) -> StackId {
        while let Some(node) = self.tree.node(stack) {
            if matches!(self.frame_kind(node), FrameKind::Labels(_) | FrameKind::Thread(_)) {
                break;
            }
            stack = node.parent;
        }
        stack
    }

    /// Whether a node is not a frame but part of the base of some stacks.
    pub(super) fn is_base(&self, node: Node) -> bool {
        match self.frame_kind(node) {
            FrameKind::Labels(_) | FrameKind::Thread(_) => true,
            FrameKind::Named(name) => name == self.truncated,
            _ => false,
        }
    }
}
