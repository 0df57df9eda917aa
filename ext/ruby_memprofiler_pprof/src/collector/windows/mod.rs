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
mod lifecycle;
mod program_clock;
mod timer;

pub use lifecycle::{end, has_no_timer};

use super::Collector;
use super::options::Options;
use super::sampling::{Choice, default_frame};
use super::stats::WindowFigures;
use crate::vm::activity;
use memprofiler_core::windows::{Schedule, is_looked_at};
use rb_sys::VALUE;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use timer::TIMER;

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
}
