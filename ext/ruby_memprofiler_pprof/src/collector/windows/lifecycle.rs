//! How windows are taken into use, and given up.

use super::program_clock::CLOCK;
use super::timer::TIMER;
use super::{Plan, follow};
use crate::collector::options::Options;
use crate::collector::sampling::Choice;
use crate::collector::{Collector, Phase, hooked, random_seed};
use crate::vm::ractor::MainRactor;
use crate::vm::{gc, protect};
use magnus::Error;
use memprofiler_core::reservoir::Windows as ReservoirWindows;
use memprofiler_core::windows::Budget;
use rb_sys::VALUE;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The collector that uses windows, by its address; 0 if none does. Beside a hook that is always on another collector's
/// windows would gain nothing.
static OWNER: AtomicUsize = AtomicUsize::new(0);

/// Whether there can be no timer (any more).
static NO_TIMER: AtomicBool = AtomicBool::new(false);

/// What a hook is expected to cost per object, apart from taking samples, in nanoseconds, until the windows tell.
const EXPECTED_COST: f64 = 30.0;

/// Whether there can be no timer, at least not any more.
pub fn has_no_timer() -> bool {
    NO_TIMER.load(Ordering::Relaxed)
}

impl Collector {
    /// Whether another collector uses windows.
    pub(in crate::collector) fn others_use_windows(&self) -> bool {
        let owner = OWNER.load(Ordering::Relaxed);
        owner != 0 && owner != std::ptr::from_ref(self) as usize
    }

    /// Uses windows of the part `duty` of each `frame`, or of the usual one, or stops using them. The collector must be
    /// running.
    pub(in crate::collector) fn switch_windows(
        &self,
        main: MainRactor,
        choice: Choice,
        options: &Options,
    ) -> Result<(), Error> {
        self.windows.reason.set(choice.reason);
        if let Some(plan) = self.windows.used.get() {
            let wanted = Plan::new(options, TIMER.is_direct(), plan.seed);
            if choice.windows && plan == wanted && !self.could_be_direct(main) {
                if TIMER.is_gone() {
                    self.windows_after_fork(main);
                }
                return Ok(());
            }
            self.stop_windows(main)?;
        }
        if choice.windows {
            return self.use_windows(main, options);
        }
        // Forgets those from before a stop, whose rate is not that of a hook that is always on.
        self.state.with(|state| state.reservoir.use_windows(None));
        Ok(())
    }

    /// Replaces the hook that is always on by windows. None must be in use.
    fn use_windows(&self, main: MainRactor, options: &Options) -> Result<(), Error> {
        end_with_the_process()?;
        // A window may end in a hook, where these are safe once they were called outside.
        gc::allocated();
        self.windows.compactions.set(gc::compactions());
        let seed = options.seed.unwrap_or_else(random_seed);
        self.exchange_hook(main, || self.windows.used.set(Some(Plan::new(options, false, seed))))
            // Without memory for a hook. The one that is added later is on all the time.
            .inspect_err(|_| {
                self.windows.used.set(None);
                self.state.with(|state| state.reservoir.use_windows(None));
            })?;
        OWNER.store(std::ptr::from_ref(self) as usize, Ordering::Relaxed);
        let budget = Budget::new(options.max_sampling_time);
        let windows =
            ReservoirWindows::new(options.window_duty, budget, EXPECTED_COST, || TIMER.timing(), &CLOCK.hooks);
        self.state.with(|state| state.reservoir.use_windows(Some(windows)));
        self.become_direct(main);
        let plan = Plan::new(options, TIMER.is_direct(), seed);
        self.windows.used.set(Some(plan));
        self.start_timer(main, plan)
    }

    /// Starts the timer. If there can be none, the hook is on all the time instead.
    fn start_timer(&self, main: MainRactor, plan: Plan) -> Result<(), Error> {
        if TIMER.start(plan.frame, plan.duty, plan.seed, follow::run).is_ok() {
            return Ok(());
        }
        NO_TIMER.store(true, Ordering::Relaxed);
        self.windows.reason.set(self.preferred_sampling().reason);
        self.stop_windows(main)
    }

    /// Has the hook on all the time again.
    fn stop_windows(&self, main: MainRactor) -> Result<(), Error> {
        self.exchange_hook(main, || self.end_windows(main))
    }

    /// Ends windows, if they are used. The hook that stays on between them is still on.
    pub(in crate::collector) fn end_windows(&self, main: MainRactor) {
        if !self.windows.are_used() {
            return;
        }
        TIMER.stop();
        self.close_window(main);
        OWNER.store(0, Ordering::Relaxed);
        self.windows.used.set(None);
        if self.failure().is_some() {
            return;
        }
        let goes_on = self.phase() == Phase::Running;
        self.state.with(|state| {
            if goes_on {
                state.reservoir.use_windows(None);
            } else {
                // The rate that they had remains, and they go on if sampling does.
                state.reservoir.abandon_window();
            }
        });
    }

    /// For a forked child, whose timer is gone.
    pub(in crate::collector) fn windows_after_fork(&self, main: MainRactor) {
        self.windows.reset_figures();
        let Some(plan) = self.windows.used.get() else { return };
        // The clock of CPU time is another one.
        self.state.with(|state| state.reservoir.abandon_window());
        self.close_window(main);
        self.become_direct(main);
        let plan = plan.with_seed(plan.seed ^ u64::from(std::process::id()));
        self.windows.used.set(Some(plan));
        // Without memory for a hook the next flush adds it; what a fork calls must not raise.
        let _ = self.start_timer(main, plan);
    }
}

/// Stops the timer, for good.
pub fn end() {
    NO_TIMER.store(true, Ordering::Relaxed);
    TIMER.stop();
}

/// Has windows end before the VM does: from then on the timer must not call it.
fn end_with_the_process() -> Result<(), Error> {
    /// Whether the VM knows. Only touched with the GVL held.
    static ARRANGED: AtomicBool = AtomicBool::new(false);
    unsafe extern "C" fn end(_: VALUE) {
        NO_TIMER.store(true, Ordering::Relaxed);
        // SAFETY: the VM runs this at the process's end, on the main Ractor, where Ruby code may run.
        let main = unsafe { MainRactor::new() };
        hooked::each(|collector| {
            if collector.windows.are_used() {
                // Without memory for a hook nothing is sampled any more; nothing may be raised here.
                collector.guarded("end of windows", || drop(collector.stop_windows(main)));
            }
        });
        TIMER.stop();
    }
    if !ARRANGED.load(Ordering::Relaxed) {
        // SAFETY: the GVL is held; the function exists as long as the process.
        protect(|| unsafe { rb_sys::rb_set_end_proc(Some(end), rb_sys::Qnil as VALUE) })?;
        ARRANGED.store(true, Ordering::Relaxed);
    }
    Ok(())
}
