//! The job that opens and closes windows at a safe point.

use super::program_clock::CLOCK;
use super::timer::TIMER;
use super::{LATE, Plan};
use crate::collector::state::State;
use crate::collector::{Collector, Phase, hooked};
use crate::vm::ractor::{self, MainRactor};
use crate::vm::{clock, gc};
use magnus::Error;
use memprofiler_core::windows::Schedule;
use std::ffi::c_void;

impl Collector {
    /// Opens or closes the window as the timer has noticed that it should.
    fn follow_schedule(&self, main: MainRactor) -> Result<(), Error> {
        let Some(Plan { schedule, .. }) = self.windows.used.get() else { return Ok(()) };
        if TIMER.is_direct() {
            self.look_for_other_hooks(main);
            return Ok(());
        }
        let (open, scheduled) = (self.windows.open.get(), TIMER.scheduled());
        if open == scheduled {
            return Ok(());
        }
        self.state.with(|state| state.reservoir.publish_hook_time(clock::monotonic()));
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
            self.weigh_window(CLOCK.cpu());
        } else {
            self.hook_window(main)?;
        }
        self.state.with(|state| self.begin_window(state, schedule, window, CLOCK.cpu(), clock::monotonic()));
        TIMER.set_in_force(Some(window));
        Ok(())
    }

    /// Begins a window at `since` by the program's CPU time, or `now` by the monotonic clock. None must be open.
    pub(super) fn begin_window(&self, state: &mut State, schedule: Schedule, window: u64, since: u64, now: u64) {
        state.reservoir.open_window(schedule.group(window), since, now);
        self.windows.open.set(Some(window));
        self.windows.opened.set(self.windows.opened.get() + 1);
    }

    /// Closes the window if one is open. From then on windows take jobs.
    pub(in crate::collector) fn close_window(&self, main: MainRactor) {
        if !self.windows.are_used() {
            return;
        }
        let direct = self.cease_to_be_direct(main);
        self.leave_window(main, direct);
    }

    /// Closes the window if one is open. Where the timer has switched the hook that is removed already.
    pub(super) fn leave_window(&self, main: MainRactor, direct: bool) {
        if self.windows.open.take().is_none() {
            return;
        }
        if !direct {
            self.unhook_window(main);
        }
        if self.failure().is_none() {
            self.weigh_window(if direct { TIMER.end() } else { CLOCK.cpu() });
        }
        // Only now, since it forgets for how long the window was overdue.
        TIMER.set_in_force(None);
    }

    fn weigh_window(&self, ended: u64) {
        self.state.with(|state| {
            state.reservoir.publish_hook_time(clock::monotonic());
            self.weigh(state, ended);
        });
    }

    /// Gives the samples of the window that `ended` by the program's CPU time their weights.
    pub(super) fn weigh(&self, state: &mut State, ended: u64) {
        let compactions = gc::compactions();
        if self.windows.compactions.replace(compactions) != compactions {
            // The VM has counted objects that no hook has seen.
            state.reservoir.forget_interval();
        }
        if state.reservoir.close_window(ended, gc::allocated()) > LATE {
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
