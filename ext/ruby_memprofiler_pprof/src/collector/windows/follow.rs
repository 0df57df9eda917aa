//! The job that opens and closes windows, as the schedule says at the safe point where it runs.

use super::timer::TIMER;
use super::{Collector, LATE, Phase, Plan};
use crate::collector::hooked;
use crate::vm::{gc, ractor, safepoint};
use magnus::Error;
use memprofiler_core::windows::Moment;
use std::ffi::c_void;

impl Collector {
    /// Does what the schedule says now.
    ///
    /// # Safety
    /// Must run at a safe point of the main Ractor.
    unsafe fn follow_schedule(&self) -> Result<(), Error> {
        let Some(Plan { schedule, .. }) = self.windows.used.get() else { return Ok(()) };
        self.state.with(|state| state.reservoir.hook_time());
        let Moment { on, window, .. } = schedule.at(TIMER.now());
        match self.windows.open.get() {
            Some(open) if on && open == window => {
                // The timer did not know how much of its time the hook has taken.
                TIMER.forget_request();
                return Ok(());
            }
            // The hook stays on.
            Some(_) if on => self.weigh_window(),
            Some(_) => {
                // SAFETY: on the main Ractor and not in a hook, as required above.
                unsafe { self.close_window() };
                return Ok(());
            }
            None if !on => return Ok(()),
            // SAFETY: on the main Ractor and not in a hook, as required above; a collector with windows is anchored.
            None => unsafe { self.hook_window() }?,
        }
        self.state.with(|state| state.reservoir.open_window(schedule.group(window)));
        self.windows.open.set(Some(window));
        self.windows.opened.set(self.windows.opened.get() + 1);
        TIMER.set_in_force(Some(window));
        Ok(())
    }

    /// Closes the window if one is open.
    ///
    /// # Safety
    /// Must run on the main Ractor; in a hook, from Ruby 4.0 on, only if there are no others.
    pub(in crate::collector) unsafe fn close_window(&self) {
        if self.windows.open.take().is_none() {
            return;
        }
        // SAFETY: as required above.
        unsafe { self.unhook_window() };
        if self.failure().is_none() {
            self.weigh_window();
        }
        // Only now, since it forgets for how long the window was overdue.
        TIMER.set_in_force(None);
    }

    /// Gives the samples of the window that ends their weights.
    fn weigh_window(&self) {
        let compactions = gc::compactions();
        let moved = self.windows.compactions.replace(compactions) != compactions;
        let overdue = self.state.with(|state| {
            if moved {
                // The VM has counted objects that no hook has seen.
                state.reservoir.forget_interval();
            }
            state.reservoir.close_window(gc::allocated())
        });
        if overdue > LATE {
            self.windows.late.set(self.windows.late.get() + 1);
        }
    }
}

/// The job.
///
/// # Safety
/// Must run at a safe point of a Ruby thread.
pub(super) unsafe extern "C" fn run(_: *mut c_void) {
    // The timer asks again.
    if !ractor::is_main() || !safepoint::has_room() {
        return;
    }
    hooked::each(|collector| {
        if !collector.windows.are_used() {
            return;
        }
        if collector.failure().is_some() {
            TIMER.stop();
        } else if collector.phase() == Phase::Running {
            collector.guarded("windows", || {
                // If there is no memory for a hook, this window is missed; nothing can be raised here.
                // SAFETY: a safe point of the main Ractor.
                drop(unsafe {
                    if ractor::others() { collector.adopt_sampling() } else { collector.follow_schedule() }
                });
            });
        }
    });
}
