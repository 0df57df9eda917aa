//! Named frames, in place of frames known by the VM's objects.

use super::{FrameKind, Stacks};
use crate::vm::names::{FunctionName, Place};
use memprofiler_core::labels::{LabelSet, THREAD};
use memprofiler_core::stack_tree::{Node, StackId};
use std::sync::Arc;

impl Stacks {
    /// The counterpart of a frame that stays as it is, on top of a named caller; with one reference for the caller of
    /// this function. The span of a sample that is no longer an exemplar is left out.
    pub fn extend_same(&mut self, caller: StackId, node: Node) -> StackId {
        let key = self.tree.function_key(node.function);
        match FrameKind::of(key) {
            FrameKind::Span(number) if self.span(number).is_none() => self.tree.retained(caller),
            _ => self.tree.extend(caller, key, node.position).0,
        }
    }

    /// The counterpart of a frame, on top of a named caller; with one reference for the caller of this function.
    pub fn extend_named(
        &mut self,
        caller: StackId,
        node: Node,
        (name, place): (Arc<FunctionName>, Place),
        line: u32,
    ) -> StackId {
        match self.frame_kind(node) {
            FrameKind::Named(_) | FrameKind::Labels(_) | FrameKind::Span(_) => self.extend_same(caller, node),
            FrameKind::Thread(_) if name.name.is_empty() => StackId::EMPTY,
            FrameKind::Thread(_) => {
                let mut labels = LabelSet::default();
                labels.set(THREAD, Some(&name.name));
                self.labelled(StackId::EMPTY, &Arc::new(labels))
            }
            FrameKind::Deferred(number) => self.on_base(caller, self.deferred.stack(number)),
            FrameKind::Walked { .. } | FrameKind::Profiled(_) => self.extend_placed(caller, name, place, line),
        }
    }

    fn extend_placed(&mut self, caller: StackId, name: Arc<FunctionName>, place: Place, line: u32) -> StackId {
        let (parent, name, line) = match place {
            Place::Own => (caller, name, line),
            Place::InPlaceOfCaller => {
                // If the stack was cut above the method, there is nothing to replace.
                let method = self.tree.node(caller).filter(|&node| !self.is_base(node));
                (method.map_or(caller, |node| node.parent), name, line)
            }
            Place::Caller => {
                let (name, line) = self.at_caller(caller, name);
                (caller, name, line)
            }
        };
        let id = self.function_names.id(name);
        self.tree.extend(parent, FrameKind::Named(id).key(), line).0
    }

    /// A function without a place of its own, as if it were at its caller's, and the line there.
    fn at_caller(&self, caller: StackId, function: Arc<FunctionName>) -> (Arc<FunctionName>, u32) {
        let found = self.tree.node(caller).and_then(|node| {
            let FrameKind::Named(id) = self.frame_kind(node) else { return None };
            Some((Arc::clone(&self.function_names.get(id)?.file), node.position))
        });
        match found {
            Some((file, line)) => {
                (Arc::new(FunctionName { name: Arc::clone(&function.name), file, start_line: 0 }), line)
            }
            None => (function, 0),
        }
    }
}
