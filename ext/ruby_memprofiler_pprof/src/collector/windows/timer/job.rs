//! For the job that opens and closes windows, and for samples.

use super::{NONE, Timer};
use crate::collector::windows::program_clock::CLOCK;
use memprofiler_core::reservoir::Timing;
use memprofiler_core::windows::Schedule;
use std::sync::atomic::Ordering;

/// The most nanoseconds that threads are taken to need to be interrupted. Above that the program is to blame, which is
/// as late when windows open as when they close.
const MOST_LATE: i64 = 100_000;

impl Timer {
    /// Whether the open window has ended at `now` by the schedule's clock, or is about to. If the thread has taken it
    /// to end too early, not knowing what the hook has taken of its time, this has it look again.
    pub fn ends(&self, schedule: Schedule, window: u64, now: u64) -> bool {
        let moment = schedule.at(now.saturating_add(self.early.load(Ordering::Relaxed)));
        if !moment.on || moment.window != window {
            return true;
        }
        self.too_early.store(true, Ordering::SeqCst);
        if self.requested.swap(0, Ordering::SeqCst) != 0 {
            self.wake();
        }
        false
    }

    /// Wakes the thread if the open window has probably ended at `now`, by the monotonic clock: how much of its time
    /// the hook takes cannot be foreseen, but hooks know it. Safe in hooks.
    pub fn note_time(&self, now: u64) {
        let time = now.saturating_sub(CLOCK.hooks());
        if time >= self.ends.load(Ordering::Relaxed) && self.ends.swap(NONE, Ordering::Relaxed) != NONE {
            self.wake();
        }
    }

    /// Notes that the job opens a window, or closes one, at `now` by the schedule's clock. It comes later than the
    /// thread has noticed, for lack of a safe point: on average equally late when windows open and close. But a thread
    /// also takes time to be interrupted, and the longer it was not, the more: that part of a window is not in it, or
    /// is.
    pub fn note_change(&self, opens: bool, now: u64) {
        let noticed = self.noticed.load(Ordering::Relaxed);
        let late = (now as i64).saturating_sub(noticed as i64).clamp(-MOST_LATE, MOST_LATE);
        // What is less than nothing wraps.
        let gained = if opens { -late } else { late };
        self.wanted_open.fetch_add(gained as u64, Ordering::Relaxed);
    }

    /// Tells the thread which window is open now.
    pub fn set_in_force(&self, window: Option<u64>) {
        self.in_force.store(window.unwrap_or(NONE), Ordering::SeqCst);
        self.requested.store(0, Ordering::SeqCst);
        // Meanwhile the thread may have noticed that another should be, and asked for nothing: what was in force before
        // was right for it. SeqCst, as in `ask_for`: that sees the store above, or this sees that one.
        if self.scheduled() != window {
            self.wake();
        }
    }

    /// What it has measured. Safe in hooks.
    pub fn timing(&self) -> Timing {
        let [elapsed, wanted] = [&self.elapsed, &self.wanted_open].map(|time| time.load(Ordering::Relaxed));
        let overdue = match self.requested.load(Ordering::Relaxed) {
            0 => 0,
            since => CLOCK.cpu().saturating_sub(since),
        };
        Timing { elapsed, wanted, overdue }
    }
}
