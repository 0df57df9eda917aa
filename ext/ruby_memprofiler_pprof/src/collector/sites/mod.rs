//! Allocation sites: stacks and classes, which samples and sums refer to by number.
//!
//! Nothing here allocates on Ruby's heap, so all of it can run in hooks.

pub mod marking;
mod naming;
mod resolver;

pub use resolver::{Names, Unnamed};

use super::classes::{Class, Classes};
use super::pins::{Holder, Pins};
use super::stacks::{Origin, Settings, Stacks};
use crate::vm::gc;
use crate::vm::object::{Type, is_heap};
use crate::vm::place::TickFrame;
use crate::vm::safepoint::Job;
use memprofiler_core::reservoir::ClassId;
use memprofiler_core::stack_tree::StackId;
use rb_sys::VALUE;
use resolver::Resolver;

/// Stacks and classes, their names, and what concerns both.
#[derive(Debug)]
pub struct Sites {
    pub stacks: Stacks,
    pub classes: Classes,
    pins: Pins,
    /// What is held by the current flush, or by naming without one.
    resolver: Resolver,
    leftovers: Leftovers,
}

/// References that the last flush did not take the time to release.
#[derive(Debug, Default)]
struct Leftovers {
    stacks: Vec<StackId>,
    classes: Vec<ClassId>,
}

impl Sites {
    /// No sites; see [`Stacks::new`].
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

    /// Reads the running stack; see [`Stacks::read`]. The Ruby object `holder` marks these sites.
    ///
    /// # Safety
    /// Must be called in a hook that the VM runs in `context`; `holder` must be alive.
    #[inline]
    pub unsafe fn read_stack(&mut self, context: *const u8, origin: Origin, allocated: Type, holder: VALUE) -> StackId {
        let Self { stacks, pins, .. } = self;
        // SAFETY: the VM runs the hook in `context`, and the holder is alive, as required above.
        unsafe { stacks.read(context, origin, allocated, &mut Holder { object: holder, pins }) }
    }

    /// Reads the stack of `context` as it was at `place`; see [`Stacks::read_at`].
    ///
    /// # Safety
    /// `context` must be the running one, at a safe point, or one that stands still; the GVL must be held, and `holder`
    /// be alive.
    pub unsafe fn read_stack_at(
        &mut self,
        context: *const u8,
        place: Option<TickFrame>,
        origin: Origin,
        holder: VALUE,
    ) -> StackId {
        let Self { stacks, pins, .. } = self;
        // SAFETY: as required above.
        unsafe { stacks.read_at(context, place, origin, &mut Holder { object: holder, pins }) }
    }

    /// The id of a class; see [`Classes::id`]. The Ruby object `holder` marks these sites.
    ///
    /// # Safety
    /// Must be called in a hook or with the GVL held; `holder` must be alive, and so must `class` if it is an object.
    #[inline]
    pub unsafe fn class_id(&mut self, class: Class, holder: VALUE) -> ClassId {
        let Self { classes, pins, .. } = self;
        // SAFETY: in a hook or with the GVL held, and both are alive, as required above.
        unsafe { classes.id(class, &mut Holder { object: holder, pins }) }
    }

    /// Adds a reference to a stack and a class that already have one.
    pub fn retain(&mut self, stack: StackId, class: ClassId) {
        self.stacks.retain(stack);
        self.classes.retain(class);
    }

    /// Releases one reference to both.
    pub fn release(&mut self, stack: StackId, class: ClassId) {
        self.stacks.release(stack);
        self.classes.release(class);
    }

    /// Releases some of the leftovers. Returns whether none are left.
    pub fn release_leftovers(&mut self, some: usize) -> bool {
        let Self { stacks, classes, leftovers, .. } = self;
        release_some(&mut leftovers.stacks, some, |stack| stacks.release(stack));
        release_some(&mut leftovers.classes, some, |class| classes.release(class));
        leftovers.stacks.is_empty() && leftovers.classes.is_empty()
    }

    /// Releases what only serves speed.
    pub fn release_dispensable(&mut self) {
        self.stacks.forget_contexts();
        self.stacks.forget_deferred(self.stacks.latest_deferred());
        while !self.release_leftovers(usize::MAX) {}
    }

    /// Drops names that no stack or class has any more: those of `some` functions from number `first` on, and on the
    /// first call all others. Returns the next number, or None at the end.
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

    /// Updates references to what compaction has moved. What was marked is pinned; but Ruby 3.1 lets the program run
    /// during compaction, and what is first referenced then is not.
    ///
    /// # Safety
    /// Must only be called in a compact function.
    pub unsafe fn relocate(&mut self) {
        let location = |value: u64| {
            if !is_heap(value as VALUE) {
                return value;
            }
            // SAFETY: in a compact function. The object was kept alive, marked or in use, so its slot still contains
            // it, or its new address.
            unsafe { gc::location(value as VALUE) }
        };
        self.stacks.relocate(location);
        self.classes.relocate(location);
    }

    /// Whether it is time to name what keeps the VM's objects alive, or to continue with that.
    #[inline]
    pub fn is_naming_due(&self) -> bool {
        self.pins.due
    }

    /// Bytes held in total.
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
