//! A sampled thread.

use super::Options;
use crate::vm::cpu_clock::{NativeId, thread_cpu_of};
use crate::vm::cpu_timer::Timer;
use crate::vm::ticks::Ticks;
use crate::vm::{clock, ractor, threads};
use memprofiler_core::windows::mix;
use rb_sys::VALUE;
use std::io;
use std::time::Duration;

/// A thread, its timer, and how much of its CPU time is accounted for. Times are in nanoseconds.
#[derive(Debug)]
pub struct Record {
    /// The Thread, which the sampler marks.
    pub thread: VALUE,
    /// Whether it is one of the main Ractor.
    pub is_main: bool,
    /// The native thread.
    pub native: NativeId,
    timer: Timer,
    /// The thread's CPU time up to which ticks have been taken.
    accounted: i128,
    /// The thread's CPU time at the beginning of the interval.
    pub interval_start: u64,
}

/// Ticks, and the CPU time that they stand for.
#[derive(Debug, Clone, Copy)]
pub struct Weighted {
    pub ticks: Ticks,
    /// In nanoseconds.
    pub weight: f64,
}

impl Record {
    /// Gives the thread a timer.
    ///
    /// # Safety
    /// The GVL must be held, and `thread` be a living Thread, run by `native`; it must be marked as long as the record
    /// exists.
    pub unsafe fn new(thread: VALUE, native: NativeId, options: &Options) -> io::Result<Self> {
        let now = thread_cpu_of(native).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let period = options.period.as_nanos() as u64;
        // At random, so that a thread that ends within a period is as likely to be seen as any other CPU time.
        let first = mix(clock::monotonic() ^ (native as u64) << 32) % period + 1;
        let timer = Timer::new(native, options.signal, Duration::from_nanos(first), options.period)?;
        let is_main = ractor::is_main();
        if is_main && !threads::share_natives() {
            // SAFETY: the Thread is alive and marked, so what it consists of exists, also after it has ended. Its native
            // thread may then run another one, but nothing is noted by then: the VM has taken the frames from it.
            unsafe { timer.follow(threads::data_of(thread)) };
        }
        // The first tick stands for a period as well: before and after it a thread has half of one on average.
        let accounted = i128::from(now) - i128::from(period - first);
        Ok(Self { thread, is_main, native, timer, accounted, interval_start: now })
    }

    /// Takes the ticks that have waited longest; None if none wait.
    pub fn take(&mut self) -> Option<Weighted> {
        let ticks = self.timer.take()?;
        let weight = (i128::from(ticks.cpu) - self.accounted).max(0);
        self.accounted = i128::from(ticks.cpu).max(self.accounted);
        Some(Weighted { ticks, weight: weight as f64 })
    }

    /// Whether there are ticks to take.
    pub fn has_ticks(&self) -> bool {
        self.timer.has_ticks()
    }

    /// Ends the interval: returns the thread's CPU time in it, or None if the thread has ended.
    pub fn end_interval(&mut self) -> Option<u64> {
        let now = thread_cpu_of(self.native)?;
        Some(now.saturating_sub(std::mem::replace(&mut self.interval_start, now)))
    }

    /// The CPU time of the interval that is known of a thread that has ended.
    pub fn accounted(&self) -> u64 {
        u64::try_from(self.accounted - i128::from(self.interval_start)).unwrap_or(0)
    }

    /// Whether this is the running thread.
    pub fn is_current(&self) -> bool {
        self.thread == threads::current()
    }
}
