//! The program's CPU time: the process's, without what windows cost.
//!
//! The timer and its jobs work in windows more than between them, so with their time these would seem to cover more of
//! the program than they do.

use crate::vm::{activity, clock, cpu_clock};
use std::sync::atomic::{AtomicU64, Ordering};

/// The one clock, as there is one timer.
pub static CLOCK: ProgramClock =
    ProgramClock { timer: AtomicU64::new(0), jobs: AtomicU64::new(0), hooks: AtomicU64::new(0) };

/// What is not the program's, in nanoseconds.
#[derive(Debug)]
pub struct ProgramClock {
    /// The timer's own CPU time, up to when it last went to sleep or woke up.
    timer: AtomicU64,
    /// The CPU time that jobs have taken.
    jobs: AtomicU64,
    /// For how long allocation hooks have run in windows, as of the last sample.
    pub hooks: AtomicU64,
}

impl ProgramClock {
    /// For a new timer: a forked child's CPU time begins anew.
    pub fn restart(&self) {
        for time in [&self.timer, &self.jobs, &self.hooks] {
            time.store(0, Ordering::Relaxed);
        }
    }

    /// The program's CPU time in nanoseconds, with what hooks take. Safe in hooks.
    pub fn cpu(&self) -> u64 {
        let [timer, jobs] = [&self.timer, &self.jobs].map(|time| time.load(Ordering::Relaxed));
        clock::process_cpu().saturating_sub(timer + jobs)
    }

    /// The same, for the timer. For the process's clock the kernel counts what other threads run only up to its last
    /// tick, but brings that up to date when their own clocks are read.
    pub fn cpu_now(&self) -> u64 {
        self.note_timer();
        cpu_clock::thread_cpu_of(activity::holder());
        self.cpu()
    }

    /// The time by the schedule's clock, which stands still for what hooks take in windows. (By a clock that goes on
    /// while others have the CPU, a window in which the hook takes long would hold less of the program.)
    pub fn now(&self) -> u64 {
        self.cpu().saturating_sub(self.hooks())
    }

    /// For how many nanoseconds allocation hooks have run in windows, as of the last sample.
    pub fn hooks(&self) -> u64 {
        self.hooks.load(Ordering::Relaxed)
    }

    /// Does a job's work, on the thread that runs it. Its CPU time is not the program's.
    pub fn in_job(&self, body: impl FnOnce()) {
        let began = clock::thread_cpu();
        body();
        let taken = clock::thread_cpu().saturating_sub(began);
        self.jobs.fetch_add(taken.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Brings the timer's own CPU time up to date; for its thread.
    pub fn note_timer(&self) {
        self.timer.store(clock::thread_cpu().as_nanos() as u64, Ordering::Relaxed);
    }
}
