//! Converts stacks and classes known by the VM's objects to stacks and classes known by name.

use super::resolver::{Names, Resolver, Unnamed};
use super::{Sites, release_some};
use crate::collector::classes::Class;
use crate::collector::pins::Pins;
use crate::collector::stacks::FrameKind;
use crate::vm::names::{FunctionName, ShownAt};
use memprofiler_core::reservoir::ClassId;
use memprofiler_core::stack_tree::{Node, StackId};
use std::iter::successors;
use std::mem::take;
use std::sync::Arc;

impl Sites {
    /// Starts naming everything, for a flush. Returns what was named ahead, which the flush cannot use.
    pub fn begin_flush(&mut self) -> Names {
        let names = self.leave_to_next();
        self.resolver.deferred = self.stacks.latest_deferred();
        names
    }

    /// Starts naming what keeps the VM's objects alive, if there is enough of it and naming is not under way. Returns
    /// whether it has started.
    pub fn begin_naming(&mut self, under_way: bool) -> bool {
        if !under_way && self.pins.are_many() {
            // Some may be gone already.
            self.pins.recount(self.stacks.unnamed_count() + self.classes.references().count());
        }
        let begins = !under_way && self.pins.are_many();
        if begins {
            self.pins.recount(0);
            self.resolver.between_flushes = true;
            self.resolver.deferred = self.stacks.latest_deferred().wrapping_sub(1);
        }
        self.pins.due = under_way || begins;
        begins
    }

    /// Whether the stack or class keeps code, a Thread or a class alive, and could be known by name or merged with
    /// others. If the innermost frame is named, so are the others, except for the Thread.
    pub fn are_unnamed(&self, stack: StackId, class: ClassId) -> bool {
        let nodes = successors(self.stacks.innermost_frame(stack), |node| self.stacks.node(node.parent));
        let looked_at = if self.resolver.between_flushes { 1 } else { usize::MAX };
        nodes.take(looked_at).any(|node| !self.resolver.leaves(self.stacks.frame_kind(node)))
            || matches!(self.classes.class(class), Class::Object(_))
    }

    /// The stack of names for `stack`, or what has to be named next for it.
    #[inline]
    pub fn named_stack(&mut self, stack: StackId) -> Result<StackId, Unnamed> {
        self.resolver.stack(stack).ok_or_else(|| self.unnamed_frames(stack))
    }

    /// The named class for `class`, or what has to be named.
    #[inline]
    pub fn named_class(&mut self, class: ClassId) -> Result<ClassId, Unnamed> {
        self.resolver.class(class).ok_or_else(|| {
            self.classes.retain(class);
            self.resolver.raw_classes.push(class);
            Unnamed::Class(class, self.classes.class(class))
        })
    }

    /// The stack of names for `stack` and the named class for `class`, or what has to be named next for them.
    pub fn named(&mut self, stack: StackId, class: ClassId) -> Result<(StackId, ClassId), Unnamed> {
        Ok((self.named_stack(stack)?, self.named_class(class)?))
    }

    #[cold]
    fn unnamed_frames(&mut self, stack: StackId) -> Unnamed {
        // Otherwise this continues.
        if self.resolver.raw_stacks.last() != Some(&stack) {
            self.stacks.retain(stack);
            self.resolver.raw_stacks.push(stack);
            // Reserves the place of the counterpart.
            self.resolver.named_stacks.push(StackId::EMPTY);
        }
        let mut chain = Vec::new();
        let mut at = stack;
        while self.resolver.names.stack(at).is_none() {
            let Some(node) = self.stacks.node(at) else { break };
            chain.push((at, node));
            at = node.parent;
        }
        Unnamed::Frames(chain)
    }

    /// The name of a frame's function if it is known; otherwise what the frame stands for, if it needs a name.
    pub fn function_name(&self, node: Node) -> Result<(Arc<FunctionName>, ShownAt), Option<FrameKind>> {
        self.resolver.names.functions.get(node.function.0 as usize).cloned().ok_or_else(|| {
            let kind = self.stacks.frame_kind(node);
            (!self.resolver.leaves(kind)).then_some(kind)
        })
    }

    /// Records the name of a frame's function.
    pub fn add_function_name(&mut self, node: Node, name: (Arc<FunctionName>, ShownAt)) {
        self.resolver.names.functions.insert(node.function.0 as usize, name);
    }

    /// Stores the named counterpart of `raw`, whose parent already has one.
    pub fn add_named_stack(&mut self, raw: StackId, node: Node, name: (Arc<FunctionName>, ShownAt), line: u32) {
        let Self { stacks, resolver, .. } = self;
        let caller = resolver.names.stack(node.parent).unwrap_or(StackId::EMPTY);
        let named = if resolver.leaves(stacks.frame_kind(node)) {
            stacks.extend_same(caller, node)
        } else {
            stacks.extend_named(caller, node, name, line)
        };
        let held = &mut resolver.named_stacks;
        let latest = held.pop().unwrap_or(StackId::EMPTY);
        if stacks.node(named).is_some_and(|node| node.parent == latest) {
            stacks.release(latest);
        } else {
            // Nothing else keeps it alive.
            held.push(latest);
        }
        held.push(named);
        if let Some(raw) = raw.index() {
            resolver.names.stacks.insert(raw, named);
        }
    }

    /// Stores the named counterpart of a class. Without a name that is the class itself.
    pub fn add_named_class(&mut self, raw: ClassId, name: Option<Arc<str>>) {
        let named = match name {
            Some(name) => self.classes.named(name),
            None => {
                self.classes.retain(raw);
                raw
            }
        };
        self.resolver.names.classes.insert(raw.0 as usize, named);
        self.resolver.named_classes.push(named);
    }

    /// Releases a reference to a stack and a class of which the names are known. The frames of the stack that was named
    /// last go at once unless something else refers to them, to make room for those known by name: otherwise a flush
    /// would need room for both kinds of all stacks.
    pub fn release_source(&mut self, stack: StackId, class: ClassId) {
        self.release(stack, class);
        let Self { stacks, resolver: Resolver { raw_stacks, latest_stack, names, .. }, .. } = self;
        if let Some(latest) = raw_stacks.last_mut().filter(|latest| **latest == stack) {
            *latest = stacks.trim(stack, |stack, function| names.forget(stack, function));
            if *latest != stack {
                *latest_stack = None;
            }
        }
    }

    /// Forgets some of the named stacks, of which nothing can be looked up any more once the sources are released.
    /// Returns whether there were any.
    pub fn forget_some_names(&mut self) -> bool {
        self.resolver.latest_stack = None;
        self.resolver.names.stacks.drop_chunk()
    }

    /// Takes what is no longer needed once the sources are released.
    pub fn take_names(&mut self) -> Names {
        (self.resolver.latest_stack, self.resolver.latest_class) = (None, None);
        take(&mut self.resolver.names)
    }

    /// Releases some of the references to what was to be named; after that nothing can be looked up any more. Returns
    /// whether none are left.
    pub fn release_sources(&mut self, some: usize) -> bool {
        let Self { stacks, classes, resolver, .. } = self;
        release_some(&mut resolver.raw_stacks, some, |raw| stacks.release(raw));
        release_some(&mut resolver.raw_classes, some, |raw| {
            if let Some(&named) = resolver.names.classes.get(raw.0 as usize) {
                if named != raw {
                    // Objects allocated under this id since naming began now have its name, too. The class can be
                    // freed.
                    classes.detach(raw, named);
                }
            }
            classes.release(raw);
        });
        resolver.raw_stacks.is_empty() && resolver.raw_classes.is_empty()
    }

    /// Ends naming without a flush, after its sources were released.
    pub fn end_naming(&mut self) {
        let deferred = self.resolver.deferred;
        self.leave_to_next();
        self.stacks.forget_deferred(deferred);
    }

    /// Ends the naming of a successful flush. Everything not known by name is newer.
    pub fn commit_flush(&mut self) {
        self.end_naming();
        self.stacks.forget_contexts();
        self.pins = Pins::default();
    }

    /// Releases all references that are held; after a successful flush there are none.
    pub fn release_held(&mut self) {
        self.release_sources(usize::MAX);
        let Resolver { named_stacks, named_classes, .. } = take(&mut self.resolver);
        named_stacks.into_iter().for_each(|stack| self.stacks.release(stack));
        named_classes.into_iter().for_each(|class| self.classes.release(class));
        self.stacks.reset_limit();
    }

    /// Leaves all references to be released with the leftovers, and returns what was found.
    fn leave_to_next(&mut self) -> Names {
        let Resolver { raw_stacks, named_stacks, raw_classes, named_classes, names, .. } = take(&mut self.resolver);
        self.leftovers.stacks.extend(raw_stacks.into_iter().chain(named_stacks));
        self.leftovers.classes.extend(raw_classes.into_iter().chain(named_classes));
        names
    }
}
