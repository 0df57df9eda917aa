//! Sampling in windows: the hook on allocations is on only while a window is open. What tracks deaths stays on.
//!
//! A native thread notices when the schedule changes ([`timer`]). Where it can, it switches the hook on, and the hook
//! switches itself off ([`direct`]): each allocation is seen if the last one that looked at the time was in a window.
//! Otherwise the thread asks for a job ([`follow`]), which runs at the next safe point and does what the thread has
//! noticed by then: whatever runs between two safe points is seen if it begins in a window. Either has the same
//! probability everywhere. It is measured: the part of the program's time for which the thread thinks that a window
//! should be open, late or not.

mod direct;
mod follow;
mod program_clock;
mod timer;

use super::options::Options;
use super::sampling::{Choice, default_frame};
use super::stats::WindowFigures;
use super::{Collector, Phase, hooked, random_seed};
use crate::vm::ractor::MainRactor;
use crate::vm::{activity, gc, protect};
use magnus::Error;
use memprofiler_core::reservoir::Windows as ReservoirWindows;
use memprofiler_core::windows::{Budget, Schedule, is_looked_at};
use program_clock::CLOCK;
use rb_sys::VALUE;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use timer::TIMER;

/// The collector that uses windows, by its address; 0 if none does. Beside a hook that is always on another collector's
/// windows would gain nothing.
static OWNER: AtomicUsize = AtomicUsize::new(0);

/// Whether there can be no timer (any more).
static NO_TIMER: AtomicBool = AtomicBool::new(false);

/// What a hook is expected to cost per object, apart from taking samples, in nanoseconds, until the windows tell.
const EXPECTED_COST: f64 = 30.0;

/// How long a window may be overdue before it counts as late, in nanoseconds of CPU time.
const LATE: u64 = 1_000_000;

/// A collector's windows.
#[derive(Debug, Default)]
pub struct Windows {
    used: Cell<Option<Plan>>,
    /// The number of the window that is open.
    open: Cell<Option<u64>>,
    /// Why windows are used, or not.
    reason: Cell<&'static str>,
    opened: Cell<u64>,
    late: Cell<u64>,
    /// How many allocations the hook has seen lately while no window was in force.
    unseen: AtomicU64,
    /// How often objects had been moved when a window ended last.
    compactions: Cell<u64>,
}

/// A schedule, and what it was made of.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Plan {
    schedule: Schedule,
    frame: Duration,
    duty: f64,
    max_sampling_time: f64,
    seed: u64,
}

impl Plan {
    fn new(options: &Options, direct: bool, seed: u64) -> Self {
        let Options { window_frame, window_duty: duty, max_sampling_time, .. } = *options;
        let frame = window_frame.unwrap_or_else(|| default_frame(direct));
        Self { schedule: Schedule::new(frame, duty, seed), frame, duty, max_sampling_time, seed }
    }

    fn with_seed(self, seed: u64) -> Self {
        Self { schedule: Schedule::new(self.frame, self.duty, seed), seed, ..self }
    }
}

impl Windows {
    /// Whether the collector samples in windows.
    pub fn are_used(&self) -> bool {
        self.used.get().is_some()
    }

    /// For the hook, which has seen an allocation while no window was in force.
    #[inline]
    pub fn pass(&self) {
        // One thread at a time has the GVL; beside other Ractors windows end.
        self.unseen.store(self.unseen.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// The kind of sampling in force.
    pub fn choice(&self) -> Choice {
        Choice { windows: self.are_used(), reason: self.reason.get() }
    }

    /// For a forked child.
    pub fn reset_figures(&self) {
        self.opened.set(0);
        self.late.set(0);
    }

    /// Whether the process was forked other than by Ruby, so that nothing has started another timer. Safe in hooks.
    pub fn lost_timer(&self) -> bool {
        self.are_used() && TIMER.is_gone()
    }
}

/// Whether there can be no timer, at least not any more.
pub fn has_no_timer() -> bool {
    NO_TIMER.load(Ordering::Relaxed)
}

/// Whether the last allocation at which the hook has looked was in a window, for the hook that the timer switches.
#[inline]
pub fn is_inside() -> bool {
    TIMER.is_inside()
}

/// Whether the hook has to look now, when this object is allocated.
#[inline]
pub fn must_look_at(object: VALUE) -> bool {
    is_looked_at(object) && TIMER.must_look()
}

/// For hooks: the calling thread has the GVL, whatever the VM has said last.
pub fn ensure_running() {
    activity::ensure_running();
}

/// For the hook, when it takes a sample in a window at `now`, by the monotonic clock.
pub fn note_time(now: u64) {
    TIMER.note_time(now);
}

impl Collector {
    /// What windows have done so far.
    pub fn window_figures(&self) -> WindowFigures {
        self.state.with(|state| {
            let exposure = state.reservoir.exposure().filter(|_| self.windows.are_used());
            WindowFigures {
                opened: self.windows.opened.get(),
                frame: self.windows.used.get().map(|plan| plan.frame.as_secs_f64()),
                direct: self.windows.are_used().then(|| TIMER.is_direct()),
                late: self.windows.late.get(),
                coverage: exposure.map(|exposure| exposure.share()),
                hook_cost: exposure.map(|exposure| exposure.cost()),
            }
        })
    }

    /// Whether another collector uses windows.
    pub(super) fn others_use_windows(&self) -> bool {
        let owner = OWNER.load(Ordering::Relaxed);
        owner != 0 && owner != std::ptr::from_ref(self) as usize
    }

    /// Uses windows of the part `duty` of each `frame`, or of the usual one, or stops using them. The collector must be
    /// running.
    pub(super) fn switch_windows(&self, main: MainRactor, choice: Choice, options: &Options) -> Result<(), Error> {
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
    pub(super) fn end_windows(&self, main: MainRactor) {
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
    pub(super) fn windows_after_fork(&self, main: MainRactor) {
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
