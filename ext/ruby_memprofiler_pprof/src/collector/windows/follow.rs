//! The job that opens and closes windows at a safe point.

use super::program_clock::CLOCK;
use super::timer::TIMER;
use super::{Collector, LATE, Phase, Plan};
use crate::collector::hooked;
use crate::vm::gc;
use crate::vm::ractor::{self, MainRactor};
use magnus::Error;
use std::ffi::c_void;

impl Collector {
    /// Opens or closes the window as the timer has noticed that it should.
    fn follow_schedule(&self, main: MainRactor) -> Result<(), Error> {
        let Some(Plan { schedule, .. }) = self.windows.used.get() else { return Ok(()) };
        let (open, scheduled) = (self.windows.open.get(), TIMER.scheduled());
        if open == scheduled {
            return Ok(());
        }
        self.state.with(|state| state.reservoir.publish_hook_time());
        let now = CLOCK.now();
        if open.is_some_and(|window| !TIMER.ends(schedule, window, now)) {
            return Ok(());
        }
        // Between windows that follow each other the hook stays on.
        if open.is_none() || scheduled.is_none() {
            TIMER.note_change(open.is_none(), now);
        }
        let Some(window) = scheduled else {
            self.close_window(main);
            return Ok(());
        };
        if open.is_some() {
            self.weigh_window();
        } else {
            self.hook_window(main)?;
        }
        self.state.with(|state| state.reservoir.open_window(schedule.group(window)));
        self.windows.open.set(Some(window));
        self.windows.opened.set(self.windows.opened.get() + 1);
        TIMER.set_in_force(Some(window));
        Ok(())
    }

    /// Closes the window if one is open.
    pub(in crate::collector) fn close_window(&self, main: MainRactor) {
        if self.windows.open.take().is_none() {
            return;
        }
        self.unhook_window(main);
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
    // Elsewhere nothing is done: the timer asks again.
    // SAFETY: at a safe point, as required above.
    let Some(main) = (unsafe { MainRactor::in_job() }) else { return };
    hooked::each(|collector| {
        if !collector.windows.are_used() {
            return;
        }
        if collector.failure().is_some() {
            TIMER.stop();
        } else if collector.phase() == Phase::Running {
            collector.guarded("windows", || {
                CLOCK.in_job(|| {
                    // If there is no memory for a hook, this window is missed; nothing can be raised here.
                    drop(if ractor::others() {
                        collector.adopt_sampling(main)
                    } else {
                        collector.follow_schedule(main)
                    });
                });
            });
        }
    });
}
