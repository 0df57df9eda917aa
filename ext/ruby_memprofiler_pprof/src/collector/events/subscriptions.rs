//! Which events the VM calls a collector's hooks for, and what it passes to them.

use super::{on_event, on_switched_event};
use crate::collector::{Collector, Phase};
use crate::vm::event_flags::SWITCHED;
use crate::vm::hooks::{self, END_MARK, END_SWEEP, FREEOBJ, NEWOBJ};
use crate::vm::ractor::MainRactor;
use magnus::Error;
use rb_sys::{VALUE, rb_event_flag_t};
use std::sync::atomic::Ordering;

/// The lowest bit is set: to the VM, which would mark a plain pointer, this is a small integer.
const SAMPLING: VALUE = 1;
/// Like `SAMPLING`, but different, so that a hook can be added before the one it replaces is removed.
const FOLLOWING: VALUE = 3;
/// For what stays on while a collector samples in windows.
const BETWEEN_WINDOWS: VALUE = 5;
/// For allocations in a window.
const IN_WINDOW: VALUE = 7;
/// The bits of a collector's address that are 0.
const TAG: VALUE = 7;

const _: () = assert!(align_of::<Collector>() > TAG as usize);

impl Collector {
    /// Adds the hook of a phase, if it has one. The collector must be anchored.
    pub(in crate::collector) fn hook(&self, main: MainRactor, phase: Phase) -> Result<(), Error> {
        let allocations = match phase {
            Phase::Idle | Phase::Detached => {
                self.suspended.store(false, Ordering::Relaxed);
                return Ok(());
            }
            Phase::Running if !self.windows.are_used() => NEWOBJ,
            Phase::Running | Phase::Stopped => 0,
        };
        let deaths = if self.uses_mark_bits() { 0 } else { FREEOBJ };
        self.add_hook(main, allocations | deaths | END_MARK | END_SWEEP, self.hook_data(phase))?;
        self.suspended.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Removes the hook of a phase, if it is on.
    pub(in crate::collector) fn unhook(&self, main: MainRactor, phase: Phase) {
        hooks::remove(main, on_event, self.hook_data(phase));
    }

    /// Replaces the hook of the running phase, after `change` has changed what that is.
    pub(in crate::collector) fn exchange_hook(&self, main: MainRactor, change: impl FnOnce()) -> Result<(), Error> {
        let previous = self.hook_data(Phase::Running);
        change();
        // Adding a hook allocates memory, for which the GC may run first: it must not find the previous hook gone.
        let added = self.hook(main, Phase::Running);
        hooks::remove(main, on_event, previous);
        if added.is_err() {
            // Like a hook that was removed for a moment: the next flush adds it.
            self.suspended.store(true, Ordering::Relaxed);
        }
        added
    }

    /// Adds the hook of a window. The collector must be anchored.
    pub(in crate::collector) fn hook_window(&self, main: MainRactor) -> Result<(), Error> {
        self.add_hook(main, NEWOBJ, self.tagged(IN_WINDOW))
    }

    /// Removes the hook of a window, if it is on.
    pub(in crate::collector) fn unhook_window(&self, main: MainRactor) {
        hooks::remove(main, on_event, self.tagged(IN_WINDOW));
    }

    /// Adds the hook that windows switch on and off. The collector must be anchored.
    pub(in crate::collector) fn hook_switched(&self, main: MainRactor) -> Result<(), Error> {
        // SAFETY: as in `add_hook`.
        unsafe { hooks::add(main, on_switched_event, SWITCHED, self.tagged(IN_WINDOW)) }
    }

    /// Removes the hook that windows switch on and off, if there is one.
    pub(in crate::collector) fn unhook_switched(&self, main: MainRactor) {
        hooks::remove(main, on_switched_event, self.tagged(IN_WINDOW));
    }

    fn add_hook(&self, main: MainRactor, events: rb_event_flag_t, data: VALUE) -> Result<(), Error> {
        debug_assert_ne!(self.holder.get(), rb_sys::Qnil as VALUE);
        // SAFETY: what `data` points to outlives the hook: an anchored collector stays alive and in place, and its
        // anchor is released after its hook was removed.
        unsafe { hooks::add(main, on_event, events, data) }
    }

    fn hook_data(&self, phase: Phase) -> VALUE {
        self.tagged(match phase {
            Phase::Running if self.windows.are_used() => BETWEEN_WINDOWS,
            Phase::Running => SAMPLING,
            _ => FOLLOWING,
        })
    }

    fn tagged(&self, tag: VALUE) -> VALUE {
        std::ptr::from_ref(self) as VALUE | tag
    }

    /// The collector to which a value of [`tagged`](Self::tagged) belongs.
    ///
    /// # Safety
    /// The collector must be alive.
    #[inline]
    pub(super) unsafe fn from_hook_data<'a>(data: VALUE) -> &'a Self {
        // SAFETY: without the tag this is the address from which `tagged` made it. The collector is still there: it
        // is anchored as long as its hooks are on.
        unsafe { &*((data & !TAG) as *const Self) }
    }
}
