//! When a flush lets other threads run.

use super::failure::FlushFailure;
use super::flushed::Holds;
use super::options::FlushOptions;
use crate::allocator::reserve;
use crate::collector::mute::Mute;
use crate::vm::{clock, gc, gvl, thread_events};
use magnus::{Error, Ruby};
use std::time::{Duration, Instant};

/// Longer than any flush.
const FOREVER: Duration = Duration::from_secs(1 << 30);

/// Splits the work of a flush into slices, and measures how long the GVL is held.
#[derive(Debug)]
pub struct Pace<'a> {
    /// The flushing thread's mute.
    pub mute: &'a Mute,
    options: FlushOptions,
    start: Instant,
    /// When the current slice should end.
    deadline: Instant,
    hold: Hold,
    holds: Holds,
}

impl<'a> Pace<'a> {
    /// For a flush that starts now, on a thread with this mute. Fails without memory for it.
    pub fn new(ruby: &Ruby, options: FlushOptions, mute: &'a Mute) -> Result<Self, FlushFailure> {
        reserve::fill();
        check_memory()?;
        let hold = Hold::begin(ruby, mute)?;
        let start = hold.start;
        Ok(Self { mute, options, start, deadline: start + options.max_hold, hold, holds: Holds::default() })
    }

    /// Whether the slice has lasted long enough.
    pub fn is_over(&self) -> bool {
        self.options.proactively_yield_gvl && Instant::now() > self.deadline
    }

    /// Lets other threads run if the slice has lasted long enough. May run Ruby code, and raise. Fails if memory runs
    /// out.
    pub fn rest(&mut self, ruby: &Ruby) -> Result<(), FlushFailure> {
        check_memory()?;
        if !self.is_over() {
            return Ok(());
        }
        self.hold.end(gc_time(ruby, self.mute)?, &mut self.holds);
        self.holds.checks += 1;
        if thread_events::any_waiting() {
            self.mute.lift(gvl::schedule)?;
            self.holds.yields += 1;
        }
        self.hold = Hold::begin(ruby, self.mute)?;
        self.deadline = self.hold.start + self.slice();
        Ok(())
    }

    /// Runs `work`, without the GVL if that is allowed.
    pub fn without_gvl<T: Send>(&mut self, ruby: &Ruby, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        if !self.options.yield_gvl {
            return Ok(work());
        }
        self.hold.end(gc_time(ruby, self.mute)?, &mut self.holds);
        let result = gvl::without_gvl(work);
        self.hold = Hold::begin(ruby, self.mute)?;
        Ok(result)
    }

    /// Lets pending exceptions come while everything can still be put back: the VM checks interrupts when a method
    /// returns, and would then discard the profile. Returns the total time of garbage collections, for
    /// [`finish`](Self::finish).
    pub fn check_interrupts(&self, ruby: &Ruby) -> Result<Duration, Error> {
        let gc_time = gc_time(ruby, self.mute)?;
        self.mute.lift(gvl::check_interrupts)?;
        Ok(gc_time)
    }

    /// For the end of a flush; `gc_time` is the GC's time shortly before.
    pub fn finish(&mut self, gc_time: Duration) -> Holds {
        self.hold.end(gc_time, &mut self.holds);
        self.holds
    }

    /// The length of the next slice. A thread that never waits keeps the GVL for its whole quantum of 100 ms each time
    /// it is offered, so a long flush would take minutes. So slices grow longer as the flush approaches its time limit,
    /// and past the limit the work is no longer split.
    fn slice(&self) -> Duration {
        let left = 1.0 - self.start.elapsed().as_secs_f64() / self.options.max_duration.as_secs_f64();
        if left <= 0.0 { FOREVER } else { self.options.max_hold.div_f64(left.max(1e-3)) }
    }
}

fn check_memory() -> Result<(), FlushFailure> {
    if reserve::is_low() { Err(FlushFailure::NoMemory) } else { Ok(()) }
}

/// The total time of garbage collections so far. May run Ruby code, and raise.
fn gc_time(ruby: &Ruby, mute: &Mute) -> Result<Duration, Error> {
    mute.lift(|| gc::total_time(ruby))
}

/// When the GVL was acquired: by the wall clock, the thread's CPU clock and the garbage collector's time.
#[derive(Debug, Clone, Copy)]
struct Hold {
    start: Instant,
    cpu_time: Duration,
    gc_time: Duration,
}

impl Hold {
    fn begin(ruby: &Ruby, mute: &Mute) -> Result<Self, Error> {
        let gc_time = gc_time(ruby, mute)?;
        Ok(Self { start: Instant::now(), cpu_time: clock::thread_cpu(), gc_time })
    }

    fn end(self, gc_time: Duration, holds: &mut Holds) {
        let collecting = gc_time.saturating_sub(self.gc_time);
        let cpu = clock::thread_cpu().saturating_sub(self.cpu_time).saturating_sub(collecting);
        holds.longest = holds.longest.max(self.start.elapsed());
        holds.longest_cpu = holds.longest_cpu.max(cpu);
    }
}
