//! Stacks of names, made of stacks of the VM's objects frame by frame.

use super::resolve::Resolver;
use crate::collector::keys::Function;
use crate::collector::state::State;
use crate::vm::names::{FunctionName, Place};
use memprofiler_core::labels::{LabelSet, THREAD};
use memprofiler_core::stack_tree::{Node, StackId};
use std::sync::Arc;

impl Resolver {
    /// Stores the named counterpart of `raw`, whose parent has one, and returns it with a reference; takes over the
    /// caller's reference to `latest`, the one stored before.
    pub(super) fn add_named(
        &mut self,
        state: &mut State,
        raw: StackId,
        node: Node,
        (name, place): (Arc<FunctionName>, Place),
        line: u32,
        latest: StackId,
    ) -> StackId {
        let function = Function::of(state.capture.stacks.function_key(node.function));
        let named = match function {
            Function::Named(_) | Function::Labels(_) => {
                let parent = self.names.stack(node.parent).unwrap_or(StackId::EMPTY);
                state.capture.stacks.extend(parent, function.key(), node.position).0
            }
            Function::Thread(_) if name.name.is_empty() => StackId::EMPTY,
            Function::Thread(_) => {
                let mut labels = LabelSet::default();
                labels.set(THREAD, Some(&name.name));
                state.capture.labelled(StackId::EMPTY, &Arc::new(labels))
            }
            Function::Deferred(number) => {
                let root = self.names.stack(node.parent).unwrap_or(StackId::EMPTY);
                state.capture.rooted(root, state.capture.deferred.stack(number))
            }
            Function::Walked { .. } | Function::Profiled(_) => self.extend_named(state, node, line, name, place),
        };
        if state.capture.stacks.node(named).is_some_and(|node| node.parent == latest) {
            state.capture.stacks.release(latest);
        } else {
            // Nothing else keeps it alive.
            self.named_stacks.push(latest);
        }
        if let Some(raw) = raw.index() {
            self.names.stacks.insert(raw, named);
        }
        named
    }

    /// The named stack for a frame whose caller has one, with a reference.
    fn extend_named(&self, state: &mut State, node: Node, line: u32, name: Arc<FunctionName>, place: Place) -> StackId {
        let caller = self.names.stack(node.parent).unwrap_or(StackId::EMPTY);
        let (parent, name, line) = match place {
            Place::Own => (caller, name, line),
            Place::InPlaceOfCaller => {
                // Where the stack was cut above the method there is nothing to take the place of.
                let method = state.capture.stacks.node(caller).filter(|&node| !state.capture.is_root(node));
                (method.map_or(caller, |node| node.parent), name, line)
            }
            Place::Caller => {
                let (name, line) = at_caller(state, caller, name);
                (caller, name, line)
            }
        };
        let id = state.function_names.id(name);
        state.capture.stacks.extend(parent, Function::Named(id).key(), line).0
    }
}

/// A function without a place of its own as if it were at its caller's, and the line there.
fn at_caller(state: &State, caller: StackId, function: Arc<FunctionName>) -> (Arc<FunctionName>, u32) {
    let found = state.capture.stacks.node(caller).and_then(|node| {
        let Function::Named(id) = Function::of(state.capture.stacks.function_key(node.function)) else { return None };
        Some((Arc::clone(&state.function_names.get(id)?.file), node.position))
    });
    match found {
        Some((file, line)) => (Arc::new(FunctionName { name: Arc::clone(&function.name), file, start_line: 0 }), line),
        None => (function, 0),
    }
}
