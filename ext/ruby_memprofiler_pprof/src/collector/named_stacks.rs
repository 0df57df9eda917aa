//! Stacks of names, made of stacks of the VM's objects frame by frame.

use super::keys::Function;
use super::state::State;
use crate::vm::names::{FunctionName, Place};
use memprofiler_core::labels::{LabelSet, THREAD};
use memprofiler_core::stack_tree::{Node, StackId};
use std::sync::Arc;

impl State {
    /// Stores the named counterpart of `raw`, whose parent has one.
    pub(super) fn add_named(&mut self, raw: StackId, node: Node, (name, place): (Arc<FunctionName>, Place), line: u32) {
        let parent = self.resolver.names.stack(node.parent).unwrap_or(StackId::EMPTY);
        let keeps_threads = self.resolver.keeps_threads;
        let function = self.capture.function(node.function);
        let named = match function {
            Function::Named(_) | Function::Labels(_) => {
                self.capture.stacks.extend(parent, function.key(), node.position).0
            }
            // The next flush knows.
            Function::Thread(_) if keeps_threads => self.capture.stacks.extend(parent, function.key(), node.position).0,
            Function::Deferred(number) if keeps_threads && self.naming.awaits(number) => {
                self.capture.stacks.extend(parent, function.key(), node.position).0
            }
            Function::Thread(_) if name.name.is_empty() => StackId::EMPTY,
            Function::Thread(_) => {
                let mut labels = LabelSet::default();
                labels.set(THREAD, Some(&name.name));
                self.capture.labelled(StackId::EMPTY, &Arc::new(labels))
            }
            Function::Deferred(number) => {
                let stack = self.capture.deferred.stack(number);
                self.capture.on_base(parent, stack)
            }
            Function::Walked { .. } | Function::Profiled(_) => self.extend_named(parent, line, name, place),
        };
        let held = &mut self.resolver.named_stacks;
        let latest = held.pop().unwrap_or(StackId::EMPTY);
        if self.capture.stacks.node(named).is_some_and(|node| node.parent == latest) {
            self.capture.stacks.release(latest);
        } else {
            // Nothing else keeps it alive.
            held.push(latest);
        }
        held.push(named);
        if let Some(raw) = raw.index() {
            self.resolver.names.stacks.insert(raw, named);
        }
    }

    /// The named stack for a frame whose caller is this one, with a reference.
    fn extend_named(&mut self, caller: StackId, line: u32, name: Arc<FunctionName>, place: Place) -> StackId {
        let (parent, name, line) = match place {
            Place::Own => (caller, name, line),
            Place::InPlaceOfCaller => {
                // Where the stack was cut above the method there is nothing to take the place of.
                let method = self.capture.stacks.node(caller).filter(|&node| !self.capture.is_base(node));
                (method.map_or(caller, |node| node.parent), name, line)
            }
            Place::Caller => {
                let (name, line) = at_caller(self, caller, name);
                (caller, name, line)
            }
        };
        let id = self.function_names.id(name);
        self.capture.stacks.extend(parent, Function::Named(id).key(), line).0
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
