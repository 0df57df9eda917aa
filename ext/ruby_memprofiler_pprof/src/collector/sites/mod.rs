//! Where objects are allocated: stacks and classes, which samples and sums refer to by number.
//!
//! Everything here runs without allocating on Ruby's heap, so also in hooks.

mod naming;
mod resolver;

pub use resolver::{Names, Unnamed};

use super::classes::{Class, Classes};
use super::pins::{Holder, Pins};
use super::stacks::{Origin, Settings, Stacks};
use crate::vm::gc;
use crate::vm::object::{Type, is_heap};
use crate::vm::safepoint::Job;
use memprofiler_core::reservoir::ClassId;
use memprofiler_core::stack_tree::StackId;
use rb_sys::VALUE;
use resolver::Resolver;

/// Stacks and classes, their names, and what is known of both at once.
#[derive(Debug)]
pub struct Sites {
    pub stacks: Stacks,
    pub classes: Classes,
    pins: Pins,
    /// What the flush under way, or else naming without one, holds.
    resolver: Resolver,
    leftovers: Leftovers,
}

/// References that the last flush did not take the time to give up.
#[derive(Debug, Default)]
struct Leftovers {
    stacks: Vec<StackId>,
    classes: Vec<ClassId>,
}

impl Sites {
    /// Nothing; see [`Stacks::new`].
    pub fn new(settings: Settings, backtrace_job: Job) -> Self {
        Self {
            stacks: Stacks::new(settings, backtrace_job),
            classes: Classes::default(),
            pins: Pins::default(),
            resolver: Resolver::default(),
            leftovers: Leftovers::default(),
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.stacks.clear();
        self.classes = Classes::default();
        self.pins = Pins::default();
        self.resolver = Resolver::default();
        self.leftovers = Leftovers::default();
    }

    /// The running stack; see [`Stacks::read`]. The Ruby object `holder` marks these sites.
    ///
    /// # Safety
    /// In a hook that the VM runs in `context`; `holder` alive.
    #[inline]
    pub unsafe fn read_stack(&mut self, context: *const u8, origin: Origin, allocated: Type, holder: VALUE) -> StackId {
        let Self { stacks, pins, .. } = self;
        // SAFETY: the VM runs the hook in `context`, and the holder is alive, as asked for above.
        unsafe { stacks.read(context, origin, allocated, &mut Holder { object: holder, pins }) }
    }

    /// The id of a class; see [`Classes::id`]. The Ruby object `holder` marks these sites.
    ///
    /// # Safety
    /// In a hook or with the GVL held; `holder` alive, and `class` if it is an object.
    #[inline]
    pub unsafe fn class_id(&mut self, class: Class, holder: VALUE) -> ClassId {
        let Self { classes, pins, .. } = self;
        // SAFETY: in a hook or with the GVL held, and both are alive, as asked for above.
        unsafe { classes.id(class, &mut Holder { object: holder, pins }) }
    }

    /// Adds a reference to a stack and a class that have one.
    pub fn retain(&mut self, stack: StackId, class: ClassId) {
        self.stacks.retain(stack);
        self.classes.retain(class);
    }

    /// Gives up one reference to both.
    pub fn release(&mut self, stack: StackId, class: ClassId) {
        self.stacks.release(stack);
        self.classes.release(class);
    }

    /// Gives up some of the leftovers. Returns whether all is done.
    pub fn release_leftovers(&mut self, some: usize) -> bool {
        let Self { stacks, classes, leftovers, .. } = self;
        release_some(&mut leftovers.stacks, some, |stack| stacks.release(stack));
        release_some(&mut leftovers.classes, some, |class| classes.release(class));
        leftovers.stacks.is_empty() && leftovers.classes.is_empty()
    }

    /// Gives up what nothing but speed is lost with.
    pub fn release_dispensable(&mut self) {
        self.stacks.forget_contexts();
        self.stacks.forget_deferred(self.stacks.latest_deferred());
        while !self.release_leftovers(usize::MAX) {}
    }

    /// Drops those names that no stack or class has any more, of `some` functions from number `first` on, and with the
    /// first all others. Returns the next number, unless that is all.
    pub fn prune_names(&mut self, first: usize, some: usize) -> Option<usize> {
        if first == 0 {
            self.classes.prune_names();
        }
        self.stacks.prune_names(first, some)
    }

    /// How many of the VM's objects are kept alive.
    pub fn reference_count(&self) -> usize {
        self.stacks.references().count() + self.classes.references().count()
    }

    /// Follows what compaction has moved. What was marked is pinned; but Ruby 3.1 lets the program run while it compacts,
    /// and what is referred to for the first time then is not.
    ///
    /// # Safety
    /// Only in a compact function.
    pub unsafe fn relocate(&mut self) {
        let location = |value: u64| {
            if !is_heap(value as VALUE) {
                return value;
            }
            // SAFETY: in a compact function. What is referred to was kept alive, marked or in use, so that its slot has
            // it still or says where it went.
            unsafe { gc::location(value as VALUE) }
        };
        self.stacks.relocate(location);
        self.classes.relocate(location);
    }

    /// Whether it is time to name what keeps the VM's objects alive, or to go on with that.
    #[inline]
    pub fn is_naming_due(&self) -> bool {
        self.pins.due
    }

    /// Bytes held in all.
    pub fn bytes(&self) -> usize {
        self.stacks.bytes() + self.classes.bytes() + self.name_bytes()
    }

    /// Bytes held by names.
    pub fn name_bytes(&self) -> usize {
        self.stacks.name_bytes() + self.classes.name_bytes()
    }
}

/// Passes the last `some` of `references` to `release`.
fn release_some<T>(references: &mut Vec<T>, some: usize, release: impl FnMut(T)) {
    references.drain(references.len().saturating_sub(some)..).for_each(release);
}
