//! Windows that take no safe point: the timer switches the hook on, and the hook itself off.
//!
//! The hook stays in the VM's list, and is switched by the variable that allocations look at ([`EventFlags`]), shortly
//! before a window. One allocation in four looks at the time: the first of these in the window does what the job would
//! do otherwise, the first after its end switches the hook off. So each allocation is seen if the last one that looked
//! was in a window, and a program of compiled code is not interrupted.
//!
//! That is possible only as long as nobody else has a hook on allocations, which would be switched, too. Whenever hooks
//! were added or removed a job looks.

use super::program_clock::CLOCK;
use super::timer::TIMER;
use super::{Collector, follow};
use crate::collector::state::State;
use crate::faults::{self, InHook};
use crate::vm::errno::SavedErrno;
use crate::vm::event_flags::EventFlags;
use crate::vm::ractor::{self, MainRactor};
use crate::vm::{activity, clock, safepoint};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

impl Collector {
    /// Whether windows take jobs now, and need not. False while it cannot be known, as a window is open.
    pub(super) fn could_be_direct(&self, main: MainRactor) -> bool {
        !TIMER.is_direct()
            && self.windows.open.get().is_none()
            && EventFlags::find(main).is_some_and(EventFlags::are_clear)
    }

    /// Has the timer switch the hook on, if that is possible. No window may be open.
    pub(super) fn become_direct(&self, main: MainRactor) {
        let Some(flags) = EventFlags::find(main) else { return };
        // Has the VM compute the variable from all hooks: the end of a Ractor may have cleared it (Bug #19112).
        if self.hook_switched(main).is_ok() {
            self.unhook_switched(main);
            self.take_over(main, flags);
        }
    }

    /// Has the timer switch the hook on if nobody else wants its events, by what the VM has just computed. Without
    /// memory for a hook nothing changes.
    fn take_over(&self, main: MainRactor, flags: EventFlags) -> bool {
        let added = flags.are_clear() && self.hook_switched(main).is_ok();
        if added {
            flags.claim();
            TIMER.set_direct();
        }
        added
    }

    /// Leaves the hook to jobs. Whether the timer has switched it until now.
    pub(super) fn cease_to_be_direct(&self, main: MainRactor) -> bool {
        let direct = TIMER.leave_direct();
        if direct {
            self.unhook_switched(main);
        }
        direct
    }

    /// For the job, after hooks were added or removed.
    pub(super) fn look_for_other_hooks(&self, main: MainRactor) {
        let Some(flags) = EventFlags::known().filter(|flags| flags.are_changed()) else { return };
        TIMER.pause();
        // Has the VM compute the variable from all other hooks.
        self.unhook_switched(main);
        if self.take_over(main, flags) {
            if TIMER.scheduled().is_some() {
                flags.switch(true);
            }
        } else {
            TIMER.leave_direct();
            self.leave_window(main, true);
        }
    }

    /// For the hook, when the window may have begun or be over: whether an allocation now is in it. Not near the end of
    /// the stack.
    #[cold]
    #[inline(never)]
    pub(in crate::collector) fn follow_window(&self) -> bool {
        let now = clock::monotonic();
        let inside = (TIMER.is_in_force() || self.enter_window(now)) && self.window_goes_on(now);
        TIMER.set_inside(inside);
        inside
    }

    /// If no window is in force that should be open: whether there is one, which it begins.
    fn enter_window(&self, now: u64) -> bool {
        if ractor::others() || self.failure().is_some() {
            return self.end_windows_soon();
        }
        let _errno = SavedErrno::new();
        activity::ensure_running();
        let Some(plan) = self.windows.used.get() else { return false };
        let Some(window) = TIMER.scheduled() else {
            // The VM has switched the hook on, since hooks were added or removed.
            self.switch_off_between_windows();
            return false;
        };
        let _trap = InHook::enter("window");
        let add = |state: &mut State| state.reservoir.add_unseen(self.windows.unseen.swap(0, Ordering::Relaxed), now);
        let added = self.state.try_with(add);
        if added.is_none() {
            // Who writes a profile without the GVL may have the state for long.
            TIMER.look_later();
            return false;
        }
        if !TIMER.has_begun() {
            return false;
        }
        let work = AssertUnwindSafe(|| {
            self.state.try_with(|state| {
                faults::point("window");
                CLOCK.in_job(|| {
                    if self.windows.open.get().is_some() {
                        self.weigh(state, TIMER.end());
                    }
                    self.begin_window(state, plan.schedule, window, TIMER.beginning(), now);
                });
                TIMER.confirm(window);
            })
        });
        match catch_unwind(work) {
            // Who writes a profile without the GVL may have the state. The next allocation will do as well.
            Ok(entered) => entered.is_some(),
            Err(_) => {
                self.panicked("window");
                false
            }
        }
    }

    /// When the window that is in force may be over: whether it goes on. If not it ends here.
    fn window_goes_on(&self, now: u64) -> bool {
        if ractor::others() || self.failure().is_some() {
            return self.end_windows_soon();
        }
        let _errno = SavedErrno::new();
        activity::ensure_running();
        // Without the state, which another thread may have, it ends a little early.
        self.state.try_with(|state| state.reservoir.publish_hook_time(now));
        let over = TIMER.is_over();
        if over {
            self.switch_off_between_windows();
        }
        !over
    }

    /// For the hook, where windows must not be used: asks for the job, which ends them. That may take long, if the main
    /// Ractor waits for others.
    fn end_windows_soon(&self) -> bool {
        self.switch_off();
        safepoint::request(follow::run);
        false
    }

    fn switch_off_between_windows(&self) {
        self.switch_off();
        // The timer may have got one ready at this moment. It is scheduled before the hook is switched on: this sees
        // the one, or is before the other.
        if TIMER.scheduled().is_some() {
            EventFlags::known().map(|flags| flags.switch(true));
        }
    }

    /// Sees no more of this window. Safe in hooks.
    pub(in crate::collector) fn cut_window_short(&self) {
        TIMER.cut_short();
        self.switch_off();
    }

    fn switch_off(&self) {
        if EventFlags::known().is_some_and(|flags| !flags.switch(false)) {
            safepoint::request(follow::run);
        }
    }
}
