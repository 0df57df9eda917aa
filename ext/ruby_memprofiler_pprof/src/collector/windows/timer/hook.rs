//! For the hook that the thread switches on: when a window begins and ends.

use super::{NONE, Timer};
use crate::collector::windows::program_clock::CLOCK;
use crate::vm::{clock, time_stamp};
use std::sync::atomic::Ordering;

/// How many times its length a window's beginning or end can be ahead when the hook looks.
const MOST_AHEAD: u64 = 4;

/// For how long the hook does not look again if it cannot begin a window, in nanoseconds.
const MOMENT: u64 = 100_000;

impl Timer {
    /// Whether the last allocation at which the hook has looked was in a window.
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.inside.load(Ordering::Relaxed)
    }

    /// Notes what the hook has seen, or that it is not in a window any more.
    pub fn set_inside(&self, inside: bool) {
        self.inside.store(inside, Ordering::Relaxed);
    }

    /// Whether the window that should be open is in force. For the hook that the thread switches.
    pub fn is_in_force(&self) -> bool {
        let scheduled = self.scheduled.load(Ordering::Relaxed);
        scheduled == self.in_force.load(Ordering::Relaxed) && scheduled != NONE
    }

    /// Whether the window may have begun or be over, so that [`has_begun`](Self::has_begun) and
    /// [`is_over`](Self::is_over) have to be asked.
    #[inline]
    pub fn must_look(&self) -> bool {
        self.look_at.has_passed(time_stamp::ticks())
    }

    /// Has the hook not look again for a moment.
    pub fn look_later(&self) {
        self.look_in(MOMENT);
    }

    /// Whether the window that is scheduled has begun. What the hook has taken must be published.
    pub fn has_begun(&self) -> bool {
        !self.put_off_look(self.opens.load(Ordering::SeqCst), CLOCK.now())
    }

    /// Whether the window is over. If so it is no longer scheduled. What the hook has taken must be published.
    pub fn is_over(&self) -> bool {
        let in_force = self.in_force.load(Ordering::SeqCst);
        if self.put_off_look(self.closes.load(Ordering::SeqCst), CLOCK.now()) {
            // That may be when another one closes, which the thread has just got ready.
            if self.scheduled.load(Ordering::SeqCst) != in_force {
                self.look_at.end();
            }
            return false;
        }
        self.note_end();
        self.look_at.end();
        // Unless the thread has just got another one ready.
        let _ = self.scheduled.compare_exchange(in_force, NONE, Ordering::SeqCst, Ordering::SeqCst);
        true
    }

    /// Has the hook look in so many nanoseconds.
    pub(super) fn look_in(&self, nanoseconds: u64) {
        self.look_at.put_off(nanoseconds, clock::monotonic(), time_stamp::ticks());
    }

    /// Has the hook look no earlier than at a window's beginning or end, if that is after `now`, both by the schedule's
    /// clock. Whether it is.
    fn put_off_look(&self, time: u64, now: u64) -> bool {
        let left = time.saturating_sub(now);
        // The clock may have gone back, as where another Ractor was created.
        let ahead = left > 0 && left <= MOST_AHEAD.saturating_mul(self.schedule().window());
        if ahead {
            self.look_in(left);
        }
        ahead
    }

    /// When the window that is scheduled begins, by the program's CPU time.
    pub fn beginning(&self) -> u64 {
        self.opens.load(Ordering::SeqCst).saturating_add(CLOCK.hooks())
    }

    /// When the window that was in force last has ended, by the program's CPU time.
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::SeqCst)
    }

    /// Notes that the window which is scheduled ends, if it is in force: at the latest when it closes.
    pub(super) fn note_end(&self) {
        let in_force = self.in_force.load(Ordering::SeqCst);
        if in_force != NONE && self.scheduled.load(Ordering::SeqCst) == in_force {
            let end = self.closes.load(Ordering::SeqCst).min(CLOCK.now()).saturating_add(CLOCK.hooks());
            self.end.store(end, Ordering::SeqCst);
        }
    }

    /// Has the window close now. Safe in hooks.
    pub fn cut_short(&self) {
        self.closes.fetch_min(CLOCK.now(), Ordering::SeqCst);
        self.set_inside(false);
    }

    /// Notes that a window is in force, for the hook that the thread has switched on.
    pub fn confirm(&self, window: u64) {
        self.in_force.store(window, Ordering::SeqCst);
        self.requested.store(0, Ordering::SeqCst);
        self.look_at.end();
    }
}
