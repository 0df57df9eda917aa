//! From stacks and classes known by the VM's objects to such known by name.

use super::Collector;
use super::capture::Capture;
use super::index_map::IndexMap;
use super::keys::{Class, Function};
use super::state::State;
use crate::vm::names::{self, FunctionName, Place};
use crate::vm::position::Position;
use magnus::Error;
use memprofiler_core::hash::Map;
use memprofiler_core::live_set::ClassId;
use memprofiler_core::stack_tree::{FunctionId, Node, StackId};
use std::sync::Arc;

/// What one flush has named so far. Holds references, so that all ids mean the same until they are released.
#[derive(Debug, Default)]
pub struct Resolver {
    /// The named stack for each that was met, and for all that it extends.
    stacks: IndexMap<StackId>,
    /// The stacks that were asked for, with references to them and to their named counterparts: whatever they extend is
    /// kept alive by them.
    held: Vec<(StackId, StackId)>,
    /// How many of the first of each pair in `held` were given up.
    released: usize,
    classes: Map<ClassId, ClassId>,
    functions: Map<FunctionId, (Arc<FunctionName>, Place)>,
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
        let named = if stack == StackId::EMPTY { stack } else { self.stacks.get(stack)? };
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
        let chain = collector.state.with(|state| {
            state.capture.stacks.retain(stack);
            self.unnamed(&state.capture, stack)
        });
        let mut latest = StackId::EMPTY;
        let mut outcome = Ok(());
        for (raw, node) in chain.into_iter().rev() {
            match self.name_function(collector, node.function) {
                Ok(name) => latest = collector.state.with(|state| self.add_named(state, raw, node, name, latest)),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        self.held.push((stack, latest));
        outcome
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

    /// Gives up the references to some of the stacks that were to be named, after which none can be looked up any more.
    /// Returns whether all is done.
    pub fn release_sources(&mut self, state: &mut State, some: usize) -> bool {
        self.stacks = IndexMap::default();
        self.latest_stack = None;
        self.latest_class = None;
        self.functions.clear();
        let end = (self.released + some).min(self.held.len());
        for (raw, _) in &self.held[self.released..end] {
            state.capture.stacks.release(*raw);
        }
        self.released = end;
        self.released == self.held.len()
    }

    /// Gives up all references.
    pub fn release(&mut self, state: &mut State) {
        while !self.release_sources(state, usize::MAX / 2) {}
        for (_, named) in self.held.drain(..) {
            state.capture.stacks.release(named);
        }
        self.released = 0;
        for (raw, named) in self.classes.drain() {
            if raw != named {
                state.detach_class(raw);
            }
            state.release_class(raw);
            state.release_class(named);
        }
    }

    /// The frames of `stack` that have no name yet, the outermost last.
    fn unnamed(&self, capture: &Capture, mut stack: StackId) -> Vec<(StackId, Node)> {
        let mut chain = Vec::new();
        while self.stacks.get(stack).is_none() {
            let Some(node) = capture.stacks.node(stack) else { break };
            chain.push((stack, node));
            stack = node.parent;
        }
        chain
    }

    fn name_function(
        &mut self,
        collector: &Collector,
        function: FunctionId,
    ) -> Result<(Arc<FunctionName>, Place), Error> {
        if let Some(known) = self.functions.get(&function) {
            return Ok(known.clone());
        }
        let (key, pretty) = collector
            .state
            .with(|state| (Function::of(state.capture.stacks.function_key(function)), state.options.pretty_backtraces));
        let (name, place) = match key {
            // SAFETY: the tree refers to the function, and marks its objects.
            Function::Walked { iseq, entry } => unsafe { names::function(iseq, entry, pretty) }?,
            // SAFETY: as above.
            Function::Profiled(frame) => unsafe { names::profiled_frame(frame, pretty) }?,
            // These stand in the place of names already.
            Function::Named(_) | Function::Deferred(_) => (FunctionName::pseudo("(unknown)"), Place::Own),
        };
        let named = (Arc::new(name), place);
        self.functions.insert(function, named.clone());
        Ok(named)
    }

    /// Stores the named counterpart of `raw`, whose parent has one, and returns it with a reference; takes over the
    /// caller's reference to `latest`, the one stored before.
    fn add_named(
        &mut self,
        state: &mut State,
        raw: StackId,
        node: Node,
        (name, place): (Arc<FunctionName>, Place),
        latest: StackId,
    ) -> StackId {
        let function = Function::of(state.capture.stacks.function_key(node.function));
        let named = match function {
            Function::Named(_) => state.capture.stacks.retained(raw),
            Function::Deferred(number) => {
                let stack = state.capture.deferred.stack(number);
                state.capture.stacks.retained(stack)
            }
            Function::Walked { .. } | Function::Profiled(_) => self.extend_named(state, node, function, name, place),
        };
        if state.capture.stacks.node(named).is_some_and(|node| node.parent == latest) {
            state.capture.stacks.release(latest);
        } else {
            // Nothing else keeps it alive.
            self.held.push((StackId::EMPTY, latest));
        }
        self.stacks.insert(raw, named);
        named
    }

    /// The named stack for a frame whose caller has one, with a reference.
    fn extend_named(
        &self,
        state: &mut State,
        node: Node,
        function: Function,
        name: Arc<FunctionName>,
        place: Place,
    ) -> StackId {
        let caller = self.stacks.get(node.parent).unwrap_or(StackId::EMPTY);
        let line = match function {
            // SAFETY: the tree keeps the instruction sequence alive; the walker checked the position.
            Function::Walked { iseq, .. } if iseq != 0 => unsafe { Position::from_raw(node.position).line(iseq) },
            _ => node.position,
        };
        let (parent, name, line) = match place {
            Place::Own => (caller, name, line),
            Place::InPlaceOfCaller => {
                // Where the stack was cut above the method there is nothing to take the place of.
                let method = (caller != state.capture.truncated).then(|| state.capture.stacks.node(caller)).flatten();
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
