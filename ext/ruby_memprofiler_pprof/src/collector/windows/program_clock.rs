//! The program's CPU time: what Ruby threads use with the GVL, without what windows cost.
//!
//! Objects are allocated with the GVL only. Where other threads keep CPUs busy as well, such as those of C libraries,
//! the process's CPU time would go on faster, and by jumps: of other threads the kernel counts it at its ticks only.
//! (Windows that lasted as long by that clock saw half as much again of what there was, beside one such thread.)

use crate::vm::{activity, clock};
use std::sync::atomic::{AtomicU64, Ordering};

/// The one clock, as there is one timer.
pub static CLOCK: ProgramClock = ProgramClock { jobs: AtomicU64::new(0), hooks: AtomicU64::new(0) };

/// What is not the program's, in nanoseconds.
#[derive(Debug)]
pub struct ProgramClock {
    /// The CPU time that jobs have taken: they work in windows more than between them, so with it these would seem to
    /// cover more of the program than they do.
    jobs: AtomicU64,
    /// For how long allocation hooks have run in windows, as of the last sample.
    pub hooks: AtomicU64,
}

impl ProgramClock {
    /// For a new timer.
    pub fn restart(&self) {
        for time in [&self.jobs, &self.hooks] {
            time.store(0, Ordering::Relaxed);
        }
    }

    /// The program's CPU time in nanoseconds, with what hooks take. Safe in hooks.
    pub fn cpu(&self) -> u64 {
        // Elsewhere the CPU time of another thread cannot be read.
        let used = if cfg!(target_os = "linux") { activity::cpu() } else { clock::process_cpu() };
        used.saturating_sub(self.jobs.load(Ordering::Relaxed))
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
}
