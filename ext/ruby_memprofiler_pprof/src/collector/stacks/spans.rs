//! Spans in the tree: each is a node at the inner end of an exemplar's stack, which thus shares all its frames with
//! other stacks.

use super::{FrameKind, Stacks};
use memprofiler_core::exemplars::Span;
use memprofiler_core::stack_tree::{Node, StackId};

impl Stacks {
    /// The stack of a sample that was taken in `span`: `stack`, with the span at its inner end if the sample becomes an
    /// exemplar. Takes the caller's reference to `stack`, and returns one to the result.
    pub fn in_span(&mut self, stack: StackId, span: Span) -> StackId {
        let Some(number) = self.exemplars.offer(span) else { return stack };
        let (exemplar, _) = self.tree.extend(stack, FrameKind::Span(number).key(), 0);
        self.tree.release(stack);
        exemplar
    }

    /// The span with this number; None if its sample is no longer an exemplar.
    pub fn span(&self, number: u64) -> Option<Span> {
        self.exemplars.get(number)
    }

    /// The innermost frame of `stack`, not counting a span at its end.
    pub fn innermost_frame(&self, stack: StackId) -> Option<Node> {
        let node = self.tree.node(stack)?;
        match self.frame_kind(node) {
            FrameKind::Span(_) => self.tree.node(node.parent),
            _ => Some(node),
        }
    }

    /// The number of exemplars.
    pub fn exemplar_count(&self) -> usize {
        self.exemplars.len()
    }
}
