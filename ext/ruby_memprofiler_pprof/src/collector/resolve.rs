//! From stacks and classes known by the VM's objects to such known by name.

use super::capture::Capture;
use super::keys::{Class, Function};
use super::state::State;
use super::Collector;
use crate::vm::names::{self, FunctionName};
use magnus::Error;
use memprofiler_core::hash::Map;
use memprofiler_core::live_set::ClassId;
use memprofiler_core::stack_tree::{FunctionId, Node, StackId};
use std::sync::Arc;

/// What one flush has named so far. Holds a reference to each key and value: their ids mean the same until
/// [`release`](Self::release).
#[derive(Debug, Default)]
pub struct Resolver {
    stacks: Map<StackId, StackId>,
    classes: Map<ClassId, ClassId>,
    functions: Map<FunctionId, Arc<FunctionName>>,
    /// The stack and class asked for last.
    latest_stack: Option<(StackId, StackId)>,
    latest_class: Option<(ClassId, ClassId)>,
}

impl Resolver {
    /// The stack of names for `stack`, if it is known.
    #[inline]
    pub fn stack(&mut self, stack: StackId) -> Option<StackId> {
        if let Some((latest, named)) = self.latest_stack
            && latest == stack
        {
            return Some(named);
        }
        let named = if stack == StackId::EMPTY { stack } else { *self.stacks.get(&stack)? };
        self.latest_stack = Some((stack, named));
        Some(named)
    }

    /// The class by name for `class`, if it is known.
    #[inline]
    pub fn class(&mut self, class: ClassId) -> Option<ClassId> {
        if let Some((latest, named)) = self.latest_class
            && latest == class
        {
            return Some(named);
        }
        let named = *self.classes.get(&class)?;
        self.latest_class = Some((class, named));
        Some(named)
    }

    /// Names `stack` and all stacks that it extends. May run Ruby code.
    pub fn name_stack(&mut self, collector: &Collector, stack: StackId) -> Result<(), Error> {
        let mut chain = collector.state.with(|state| self.unnamed(&state.capture, stack));
        while let Some((raw, node)) = chain.pop() {
            let name = self.name_function(collector, node.function)?;
            collector.state.with(|state| self.add_named(state, raw, node, name));
        }
        Ok(())
    }

    /// Names `class`. May run Ruby code.
    pub fn name_class(&mut self, collector: &Collector, class: ClassId) -> Result<(), Error> {
        let key = collector.state.with(|state| {
            state.classes.retain(class.0);
            Class::of(state.classes.key(class.0))
        });
        let name = match key {
            // SAFETY: the class table marks the class, which has a reference since the line above.
            Class::Object(value) => unsafe { names::visible_class(value) }
                // SAFETY: as above.
                .map(|value| unsafe { names::class_name(value) })
                .unwrap_or_else(|| Ok("(hidden)".into())),
            Class::Internal(kind) => Ok(kind.label().into()),
            Class::Named(_) | Class::Unknown => {
                collector.state.with(|state| state.classes.retain(class.0));
                self.classes.insert(class, class);
                return Ok(());
            }
        };
        collector.state.with(|state| {
            let name = match name {
                Ok(name) => name,
                Err(error) => {
                    state.release_class(class);
                    return Err(error);
                }
            };
            let id = state.class_names.id(name);
            let (named, _) = state.classes.acquire(Class::Named(id).key());
            self.classes.insert(class, ClassId(named));
            Ok(())
        })
    }

    /// Gives up all references, and lets go of the objects that the names were read from.
    pub fn release(&mut self, state: &mut State) {
        self.latest_stack = None;
        self.latest_class = None;
        for (raw, named) in self.stacks.drain() {
            state.capture.stacks.release(raw);
            state.capture.stacks.release(named);
        }
        for (raw, named) in self.classes.drain() {
            if raw != named {
                state.detach_class(raw);
            }
            state.release_class(raw);
            state.release_class(named);
        }
        self.functions.clear();
    }

    /// The frames of `stack` that have no name yet, the outermost last.
    fn unnamed(&self, capture: &Capture, mut stack: StackId) -> Vec<(StackId, Node)> {
        let mut chain = Vec::new();
        while !self.stacks.contains_key(&stack) {
            let Some(node) = capture.stacks.node(stack) else { break };
            chain.push((stack, node));
            stack = node.parent;
        }
        chain
    }

    fn name_function(&mut self, collector: &Collector, function: FunctionId) -> Result<Arc<FunctionName>, Error> {
        if let Some(name) = self.functions.get(&function) {
            return Ok(Arc::clone(name));
        }
        let (key, depth, pretty) = collector.state.with(|state| {
            let stacks = &state.capture.stacks;
            let depth = stacks.function(function).depth;
            (Function::of(stacks.function_key(function)), depth, state.options.pretty_backtraces)
        });
        let name = match key {
            // SAFETY: the tree refers to the function, and marks its objects.
            Function::Walked { iseq, entry } => Arc::new(unsafe { names::function(iseq, entry, depth, pretty) }?),
            // SAFETY: as above.
            Function::Profiled(frame) => Arc::new(unsafe { names::profiled_frame(frame, pretty) }?),
            Function::Named(id) => collector
                .state
                .with(|state| state.function_names.get(id).cloned())
                .unwrap_or_else(|| super::state::pseudo_function("(unknown)")),
        };
        self.functions.insert(function, Arc::clone(&name));
        Ok(name)
    }

    /// Stores the named counterpart of `raw`, whose parent has one.
    fn add_named(&mut self, state: &mut State, raw: StackId, node: Node, name: Arc<FunctionName>) {
        let function = Function::of(state.capture.stacks.function_key(node.function));
        state.capture.stacks.retain(raw);
        if let Function::Named(_) = function {
            state.capture.stacks.retain(raw);
            self.stacks.insert(raw, raw);
            return;
        }
        let parent = self.stacks.get(&node.parent).copied().unwrap_or(StackId::EMPTY);
        let (name, line) = if name.native {
            at_caller(state, parent, &name)
        } else {
            let line = match function {
                // SAFETY: the tree keeps the instruction sequence alive; the walker checked the position.
                Function::Walked { iseq, .. } => unsafe { names::line(iseq, node.position) },
                Function::Profiled(_) | Function::Named(_) => node.position,
            };
            (name, line)
        };
        let id = state.function_names.id(name);
        let (named, _) = state.capture.stacks.extend(parent, Function::Named(id).key(), line);
        self.stacks.insert(raw, named);
    }
}

/// A function without a place of its own, and the line to show it at: its caller's, as in Ruby's backtraces.
fn at_caller(state: &State, caller: StackId, name: &FunctionName) -> (Arc<FunctionName>, u32) {
    let found = state.capture.stacks.node(caller).and_then(|node| {
        match Function::of(state.capture.stacks.function_key(node.function)) {
            Function::Named(id) => state.function_names.get(id).map(|function| (Arc::clone(&function.file), node.position)),
            _ => None,
        }
    });
    let (file, line) = found.unwrap_or_else(|| (Arc::clone(&name.file), 0));
    (Arc::new(FunctionName { name: Arc::clone(&name.name), file, start_line: 0, native: true }), line)
}
