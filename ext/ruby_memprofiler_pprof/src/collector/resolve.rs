//! From stacks and classes known by the VM's objects to such known by name.

use super::Collector;
use super::keys::{Class, Function};
use super::mute::Mute;
use super::state::State;
use crate::faults;
use crate::vm::names::{self, FunctionName, Place};
use crate::vm::position::Position;
use crate::vm::{class_names, protect, threads};
use magnus::rb_sys::FromRawValue;
use magnus::{Error, Value};
use memprofiler_core::reservoir::ClassId;
use memprofiler_core::sparse_array::SparseArray;
use memprofiler_core::stack_tree::{FunctionId, Node, StackId};
use std::mem::take;
use std::sync::Arc;

/// What one flush has named so far, or what was named ahead of it. Holds references, so that all ids mean the same
/// until they are released.
#[derive(Debug, Default)]
pub struct Resolver {
    pub(super) names: Names,
    /// Whether Threads are left as they are. To ask for a name takes a method, at whose end the VM raises what is due.
    pub(super) keeps_threads: bool,
    /// The stacks that were asked for; whatever they extend is kept alive by them.
    raw_stacks: Vec<StackId>,
    /// Their named counterparts, so far as they are known.
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
    pub(super) stacks: SparseArray<StackId>,
    classes: SparseArray<ClassId>,
    functions: SparseArray<(Arc<FunctionName>, Place)>,
}

/// What is to be named; the resolver holds a reference to it.
#[derive(Debug)]
pub enum Unnamed {
    /// Frames, the outermost last.
    Frames(Vec<(StackId, Node)>),
    Class(ClassId, Class),
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
    fn stack(&mut self, stack: StackId) -> Option<StackId> {
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
    fn class(&mut self, class: ClassId) -> Option<ClassId> {
        if let Some((latest, named)) = self.latest_class {
            if latest == class {
                return Some(named);
            }
        }
        let named = *self.names.classes.get(class.0 as usize)?;
        self.latest_class = Some((class, named));
        Some(named)
    }

    fn add_class(&mut self, raw: ClassId, named: ClassId) {
        self.names.classes.insert(raw.0 as usize, named);
        self.named_classes.push(named);
    }

    /// What is of no use any more once the sources are released.
    pub fn take_names(&mut self) -> Names {
        (self.latest_stack, self.latest_class) = (None, None);
        take(&mut self.names)
    }
}

impl State {
    /// The stack of names for `stack`, or what of it is to be named next.
    #[inline]
    pub fn named_stack(&mut self, stack: StackId) -> Result<StackId, Unnamed> {
        self.resolver.stack(stack).ok_or_else(|| self.unnamed_frames(stack))
    }

    /// The class by name for `class`, or what is to be named.
    #[inline]
    pub fn named_class(&mut self, class: ClassId) -> Result<ClassId, Unnamed> {
        self.resolver.class(class).ok_or_else(|| {
            self.classes.retain(class.0);
            self.resolver.raw_classes.push(class);
            Unnamed::Class(class, Class::of(self.classes.key(class.0)))
        })
    }

    #[cold]
    fn unnamed_frames(&mut self, stack: StackId) -> Unnamed {
        self.capture.stacks.retain(stack);
        self.resolver.raw_stacks.push(stack);
        // The place of the counterpart.
        self.resolver.named_stacks.push(StackId::EMPTY);
        let mut chain = Vec::new();
        let mut at = stack;
        while self.resolver.names.stack(at).is_none() {
            let Some(node) = self.capture.stacks.node(at) else { break };
            chain.push((at, node));
            at = node.parent;
        }
        Unnamed::Frames(chain)
    }

    /// Gives up the references to some of what was to be named, after which nothing can be looked up any more. Returns
    /// whether all is done.
    pub fn release_sources(&mut self, some: usize) -> bool {
        let mut resolver = take(&mut self.resolver);
        for raw in resolver.raw_stacks.drain(resolver.raw_stacks.len().saturating_sub(some)..) {
            self.capture.stacks.release(raw);
        }
        for raw in resolver.raw_classes.drain(resolver.raw_classes.len().saturating_sub(some)..) {
            if let Some(&named) = resolver.names.classes.get(raw.0 as usize) {
                if named != raw {
                    // What was allocated under this id since the naming began has its name, too. The class may go.
                    self.detach_class(raw, named);
                }
            }
            self.release_class(raw);
        }
        self.resolver = resolver;
        self.resolver.raw_stacks.is_empty() && self.resolver.raw_classes.is_empty()
    }

    /// Leaves all references to be given up with the leftovers, and returns what was found out.
    pub fn leave_to_next(&mut self) -> Names {
        let Resolver { raw_stacks, named_stacks, raw_classes, named_classes, names, .. } = take(&mut self.resolver);
        self.leftovers.stacks.extend(raw_stacks.into_iter().chain(named_stacks));
        self.leftovers.classes.extend(raw_classes.into_iter().chain(named_classes));
        names
    }

    /// Gives up all references.
    pub fn release_held(&mut self) {
        self.release_sources(usize::MAX);
        self.leave_to_next();
        while !self.release_leftovers(usize::MAX) {}
    }
}

impl Collector {
    /// Names some of it, the outermost frames first: to be called until there is a name. With a flush's mute may run
    /// Ruby code.
    pub(super) fn name(&self, mute: &Mute, unnamed: Unnamed) -> Result<(), Error> {
        match unnamed {
            Unnamed::Class(class, key) => self.name_class(class, key),
            Unnamed::Frames(chain) => {
                for (raw, node) in chain.into_iter().rev().take(FRAMES_AT_A_TIME) {
                    if self.failure().is_some() {
                        // Nothing is kept alive any more. The flush ends when it comes to rest.
                        break;
                    }
                    let name = self.name_function(mute, node.function)?;
                    let line = self.line(node)?;
                    self.state.with(|state| state.add_named(raw, node, name, line));
                }
                Ok(())
            }
        }
    }

    fn name_class(&self, class: ClassId, key: Class) -> Result<(), Error> {
        let name = match key {
            // SAFETY: the class table marks the class, to which the resolver holds a reference.
            Class::Object(value) => match unsafe { class_names::visible_class(value) } {
                // SAFETY: that class itself, or the one behind a singleton class, which keeps its superclasses alive.
                Some(visible) => unsafe { class_names::class_name(visible) }?,
                None => "(hidden)".into(),
            },
            Class::Internal(kind) => kind.label().into(),
            Class::Named(_) | Class::Unknown => {
                self.state.with(|state| {
                    state.classes.retain(class.0);
                    state.resolver.add_class(class, class);
                });
                return Ok(());
            }
        };
        self.state.with(|state| {
            let id = state.class_names.id(name);
            let (named, _) = state.classes.acquire(Class::Named(id).key());
            state.resolver.add_class(class, ClassId(named));
        });
        Ok(())
    }

    fn name_function(&self, mute: &Mute, function: FunctionId) -> Result<(Arc<FunctionName>, Place), Error> {
        let (known, key, pretty, keeps_threads) = self.state.with(|state| {
            let known = state.resolver.names.functions.get(function.0 as usize).cloned();
            let key = state.capture.function(function);
            (known, key, state.options.pretty_backtraces, state.resolver.keeps_threads)
        });
        if let Some(known) = known {
            return Ok(known);
        }
        let (name, place) = match key {
            // SAFETY: the resolver refers to a stack with this function, so that its objects are marked.
            Function::Walked { iseq, entry } => unsafe { names::function(iseq, entry, pretty) }?,
            // SAFETY: so is the object that `rb_profile_frames` returned for it.
            Function::Profiled(frame) => unsafe { names::profiled_frame(frame, pretty) }?,
            Function::Thread(thread) if !keeps_threads => {
                // SAFETY: the resolver refers to a stack that stands on this Thread, which is marked for that.
                let thread = unsafe { Value::from_raw(thread) };
                let name = mute.lift(|| threads::name(thread))?;
                (FunctionName::pseudo(name.as_deref().unwrap_or_default()), Place::Own)
            }
            // These stand in the place of names already.
            Function::Named(_) | Function::Labels(_) | Function::Deferred(_) | Function::Thread(_) => {
                (FunctionName::pseudo("(unknown)"), Place::Own)
            }
        };
        let named = (Arc::new(name), place);
        self.state.with(|state| state.resolver.names.functions.insert(function.0 as usize, named.clone()));
        Ok(named)
    }

    /// The line of a frame. To find out may take memory, for which the VM may collect garbage: not with the state
    /// borrowed.
    fn line(&self, node: Node) -> Result<u32, Error> {
        match self.state.with(|state| state.capture.function(node.function)) {
            Function::Walked { iseq, .. } if iseq != 0 => protect(|| {
                faults::point("line");
                // SAFETY: the tree keeps the instruction sequence alive; `ControlFrame::running` checked the position.
                unsafe { Position::from_raw(node.position).line(iseq) }
            }),
            _ => Ok(node.position),
        }
    }
}
