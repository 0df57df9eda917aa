//! From stacks and classes known by the VM's objects to such known by name.

use crate::collector::Collector;
use crate::collector::capture::Capture;
use crate::collector::keys::{Class, Function};
use crate::collector::mute::Mute;
use crate::collector::state::State;
use crate::vm::class_names;
use crate::vm::names::{self, FunctionName, Place};
use crate::vm::position::Position;
use crate::vm::threads;
use magnus::rb_sys::FromRawValue;
use magnus::{Error, Value};
use memprofiler_core::index_map::IndexMap;
use memprofiler_core::live_set::ClassId;
use memprofiler_core::stack_tree::{FunctionId, Node, StackId};
use std::sync::Arc;

/// What one flush has named so far. Holds references, so that all ids mean the same until they are released.
#[derive(Debug, Default)]
pub struct Resolver {
    pub(super) names: Names,
    /// The stacks that were asked for; whatever they extend is kept alive by them.
    raw_stacks: Vec<StackId>,
    /// Their named counterparts.
    pub(super) named_stacks: Vec<StackId>,
    raw_classes: Vec<ClassId>,
    named_classes: Vec<ClassId>,
    /// The stack and class asked for last.
    latest_stack: Option<(StackId, StackId)>,
    latest_class: Option<(ClassId, ClassId)>,
}

/// What was found out. Large, so that it takes a while to drop.
#[derive(Debug, Default)]
pub struct Names {
    /// The named stack for each that was met, and for all that it extends.
    pub(super) stacks: IndexMap<StackId>,
    classes: IndexMap<ClassId>,
    functions: IndexMap<(Arc<FunctionName>, Place)>,
}

impl Names {
    pub(super) fn stack(&self, stack: StackId) -> Option<StackId> {
        self.stacks.get(stack.index()?).copied()
    }
}

/// How many frames are named at a time: some of them take several calls into the VM.
const FRAMES_AT_A_TIME: usize = 64;

impl Resolver {
    /// The stack of names for `stack`, if it is known.
    #[inline]
    pub fn stack(&mut self, stack: StackId) -> Option<StackId> {
        if let Some((latest, named)) = self.latest_stack {
            if latest == stack {
                return Some(named);
            }
        }
        let named = if stack == StackId::EMPTY { stack } else { self.names.stack(stack)? };
        self.latest_stack = Some((stack, named));
        Some(named)
    }

    /// The class by name for `class`, if it is known.
    #[inline]
    pub fn class(&mut self, class: ClassId) -> Option<ClassId> {
        if let Some((latest, named)) = self.latest_class {
            if latest == class {
                return Some(named);
            }
        }
        let named = *self.names.classes.get(class.0 as usize)?;
        self.latest_class = Some((class, named));
        Some(named)
    }

    /// Names some of the frames of `stack`, the outermost first: to be called until it has a name. May run Ruby code.
    pub fn name_stack(&mut self, collector: &Collector, mute: &Mute, stack: StackId) -> Result<(), Error> {
        let chain = collector.state.with(|state| {
            state.capture.stacks.retain(stack);
            self.unnamed(&state.capture, stack)
        });
        self.raw_stacks.push(stack);
        let mut latest = StackId::EMPTY;
        let mut outcome = Ok(());
        for (raw, node) in chain.into_iter().rev().take(FRAMES_AT_A_TIME) {
            if collector.failure().is_some() {
                // Nothing is kept alive any more. The flush ends when it comes to rest.
                break;
            }
            match self.name_function(collector, mute, node.function) {
                Ok(name) => {
                    let line = line(collector, node);
                    latest = collector.state.with(|state| self.add_named(state, raw, node, name, line, latest));
                }
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        self.named_stacks.push(latest);
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
            Class::Object(value) => unsafe { class_names::visible_class(value) }
                // SAFETY: as above.
                .map(|value| unsafe { class_names::class_name(value) })
                .unwrap_or_else(|| Ok("(hidden)".into())),
            Class::Internal(kind) => Ok(kind.label().into()),
            Class::Named(_) | Class::Unknown => {
                collector.state.with(|state| state.classes.retain(class.0));
                self.add_class(class, class);
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
            self.add_class(class, ClassId(named));
            Ok(())
        })
    }

    fn add_class(&mut self, raw: ClassId, named: ClassId) {
        self.names.classes.insert(raw.0 as usize, named);
        self.raw_classes.push(raw);
        self.named_classes.push(named);
    }

    /// Gives up the references to some of what was to be named, after which nothing can be looked up any more. Returns
    /// whether all is done.
    pub fn release_sources(&mut self, state: &mut State, some: usize) -> bool {
        for raw in self.raw_stacks.drain(self.raw_stacks.len().saturating_sub(some)..) {
            state.capture.stacks.release(raw);
        }
        for raw in self.raw_classes.drain(self.raw_classes.len().saturating_sub(some)..) {
            if let Some(&named) = self.names.classes.get(raw.0 as usize) {
                if named != raw {
                    // What was allocated under this id since the flush began has its name, too. The class may go.
                    state.detach_class(raw, named);
                }
            }
            state.release_class(raw);
        }
        self.raw_stacks.is_empty() && self.raw_classes.is_empty()
    }

    /// What is of no use any more once the sources are released.
    pub fn take_names(&mut self) -> Names {
        (self.latest_stack, self.latest_class) = (None, None);
        std::mem::take(&mut self.names)
    }

    /// Leaves the references to what was named to `state`.
    pub fn leave(&mut self, state: &mut State) {
        state.leftovers.stacks.append(&mut self.named_stacks);
        state.leftovers.classes.append(&mut self.named_classes);
    }

    /// Gives up all references.
    pub fn release(&mut self, state: &mut State) {
        self.release_sources(state, usize::MAX);
        self.named_stacks.drain(..).for_each(|named| state.capture.stacks.release(named));
        self.named_classes.drain(..).for_each(|named| state.release_class(named));
    }

    /// The frames of `stack` that have no name yet, the outermost last.
    fn unnamed(&self, capture: &Capture, mut stack: StackId) -> Vec<(StackId, Node)> {
        let mut chain = Vec::new();
        while self.names.stack(stack).is_none() {
            let Some(node) = capture.stacks.node(stack) else { break };
            chain.push((stack, node));
            stack = node.parent;
        }
        chain
    }

    fn name_function(
        &mut self,
        collector: &Collector,
        mute: &Mute,
        function: FunctionId,
    ) -> Result<(Arc<FunctionName>, Place), Error> {
        if let Some(known) = self.names.functions.get(function.0 as usize) {
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
            Function::Thread(thread) => {
                // SAFETY: as above.
                let thread = unsafe { Value::from_raw(thread) };
                let name = mute.lift(|| threads::name(thread))?;
                (FunctionName::pseudo(name.as_deref().unwrap_or_default()), Place::Own)
            }
            // These stand in the place of names already.
            Function::Named(_) | Function::Labels(_) | Function::Deferred(_) => {
                (FunctionName::pseudo("(unknown)"), Place::Own)
            }
        };
        let named = (Arc::new(name), place);
        self.names.functions.insert(function.0 as usize, named.clone());
        Ok(named)
    }
}

/// The line of a frame. To find out may take memory, for which the VM may collect garbage: not with the state borrowed.
fn line(collector: &Collector, node: Node) -> u32 {
    match collector.state.with(|state| Function::of(state.capture.stacks.function_key(node.function))) {
        // SAFETY: the tree keeps the instruction sequence alive; the walker checked the position.
        Function::Walked { iseq, .. } if iseq != 0 => unsafe { Position::from_raw(node.position).line(iseq) },
        _ => node.position,
    }
}
