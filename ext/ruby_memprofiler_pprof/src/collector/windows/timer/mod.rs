//! The thread that notices when a window opens or closes. It touches no Ruby object: it switches the hook on, which the
//! hook itself switches off, or asks the VM to run a job at the next safe point. While no Ruby thread runs it waits
//! without a time limit.
//!
//! A process has at most one, which exists from the first window to the process's end.

mod hook;
mod job;
mod thread;

use super::program_clock::CLOCK;
use crate::faults;
use crate::vm::safepoint::Job;
use crate::vm::{activity, signals, time_stamp};
use memprofiler_core::windows::Deadline;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::thread::{Builder, Thread, yield_now};
use std::time::Duration;

/// More than twice what the thread uses.
const STACK_SIZE: usize = 128 << 10;

/// The one timer.
pub static TIMER: Timer = Timer {
    thread: AtomicPtr::new(std::ptr::null_mut()),
    process: AtomicU32::new(0),
    wanted: AtomicBool::new(false),
    acting: AtomicBool::new(false),
    frame: AtomicU64::new(0),
    duty: AtomicU64::new(0),
    seed: AtomicU64::new(0),
    scheduled: AtomicU64::new(NONE),
    noticed: AtomicU64::new(0),
    in_force: AtomicU64::new(NONE),
    requested: AtomicU64::new(0),
    early: AtomicU64::new(0),
    too_early: AtomicBool::new(false),
    ends: AtomicU64::new(NONE),
    elapsed: AtomicU64::new(0),
    wanted_open: AtomicU64::new(0),
    toggle: AtomicU32::new(JOBS),
    opens: AtomicU64::new(0),
    closes: AtomicU64::new(0),
    look_at: Deadline::passed(),
    inside: AtomicBool::new(false),
    end: AtomicU64::new(0),
};

/// What is in force when no window is open.
const NONE: u64 = u64::MAX;

/// Jobs open and close windows.
const JOBS: u32 = 0;
/// The thread gets them ready, the hook opens and closes them.
const DIRECT: u32 = 1;
/// For a moment nobody opens any.
const PAUSED: u32 = 2;

/// What the thread, the hook and the job share.
#[derive(Debug)]
pub struct Timer {
    /// The thread's handle; null before the first start.
    thread: AtomicPtr<Thread>,
    /// The process that it belongs to: a forked child has none.
    process: AtomicU32,
    wanted: AtomicBool,
    /// Whether the thread may be about to call the VM, or to switch the hook on.
    acting: AtomicBool,
    /// The parts of the schedule. If the thread reads them while they change it may ask for a job too much or too late,
    /// no more: the job has a schedule of its own.
    frame: AtomicU64,
    duty: AtomicU64,
    seed: AtomicU64,
    /// The number of the window that should be open by the schedule, or [`NONE`], as of when the thread last looked; of
    /// one that the hook closes, until then.
    scheduled: AtomicU64,
    /// What the schedule's clock said when that changed; read after it.
    noticed: AtomicU64,
    /// The number of the window that is open, or [`NONE`].
    in_force: AtomicU64,
    /// Since when, by the program's CPU time, the two differ; 0 if they do not.
    requested: AtomicU64,
    /// By how many nanoseconds the thread ends windows early, since it comes late on average, and whether the job has
    /// found the last end to be too early.
    early: AtomicU64,
    too_early: AtomicBool,
    /// When the open window will probably end, by the monotonic clock without what hooks take; [`NONE`] if the thread
    /// is awake anyway, or none is open.
    ends: AtomicU64,
    /// How many nanoseconds of CPU time the program has used while windows were used, without what hooks took in them,
    /// and how many of those while a window was scheduled.
    elapsed: AtomicU64,
    wanted_open: AtomicU64,
    /// How windows open and close: [`JOBS`], [`DIRECT`] or [`PAUSED`].
    toggle: AtomicU32,
    /// When the window opens for which it has last switched the hook on, and when it closes, by the schedule's clock.
    opens: AtomicU64,
    closes: AtomicU64,
    /// When the hook has to look whether the window has begun, or is over. What hooks take meanwhile puts that off.
    look_at: Deadline,
    /// Whether the last allocation at which it has looked was in a window.
    inside: AtomicBool,
    /// When the last window that was in force has ended, by the program's CPU time.
    end: AtomicU64,
}

impl Timer {
    /// Follows the schedule that [`Schedule::new`] makes of these, by requesting `job`. Creates the thread if this
    /// process has none yet.
    pub fn start(&'static self, frame: Duration, duty: f64, seed: u64, job: Job) -> io::Result<()> {
        self.frame.store(u64::try_from(frame.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.duty.store(duty.to_bits(), Ordering::Relaxed);
        self.seed.store(seed, Ordering::Relaxed);
        self.scheduled.store(NONE, Ordering::SeqCst);
        self.closes.store(0, Ordering::SeqCst);
        time_stamp::ask_kernel();
        // Has the counter's speed known when the first window is got ready: until then the hook looks each time.
        self.look_in(0);
        activity::measure(true);
        self.wanted.store(true, Ordering::SeqCst);
        if self.is_gone() {
            return self.create(job).inspect_err(|_| self.wanted.store(false, Ordering::SeqCst));
        }
        self.wake();
        Ok(())
    }

    fn create(&'static self, job: Job) -> io::Result<()> {
        if faults::denied("timer of windows") {
            return Err(io::Error::from_raw_os_error(libc::EAGAIN));
        }
        self.acting.store(false, Ordering::SeqCst);
        CLOCK.restart();
        let builder = Builder::new().name("memprofiler-win".into()).stack_size(STACK_SIZE);
        // The program's signals are for Ruby's threads.
        let thread = signals::with_all_blocked(|| builder.spawn(move || self.run(job)))?;
        activity::watch_for(thread.thread().clone());
        self.thread.store(Box::into_raw(Box::new(thread.thread().clone())), Ordering::Release);
        self.process.store(std::process::id(), Ordering::SeqCst);
        Ok(())
    }

    /// Whether the process was forked since the last start. Safe in hooks.
    pub fn is_gone(&self) -> bool {
        self.process.load(Ordering::SeqCst) != std::process::id()
    }

    /// Lets the thread wait until the next start. When this returns it does not call the VM any more.
    pub fn stop(&self) {
        self.wanted.store(false, Ordering::SeqCst);
        activity::measure(false);
        self.wait_for_action();
    }

    /// Has the thread switch the hook on from now on.
    pub fn set_direct(&self) {
        self.toggle.store(DIRECT, Ordering::SeqCst);
        self.wake();
    }

    /// Whether the thread switches the hook on.
    pub fn is_direct(&self) -> bool {
        self.toggle.load(Ordering::SeqCst) == DIRECT
    }

    /// Has the thread do nothing until this is changed again. When this returns it does not switch the hook on any
    /// more.
    pub fn pause(&self) {
        self.toggle.store(PAUSED, Ordering::SeqCst);
        self.wait_for_action();
    }

    /// Has the thread ask for jobs from now on. When this returns it does not switch the hook on any more. Whether it
    /// did.
    pub fn leave_direct(&self) -> bool {
        let direct = self.toggle.swap(JOBS, Ordering::SeqCst) != JOBS;
        self.wait_for_action();
        if direct {
            self.note_end();
            self.set_inside(false);
            self.scheduled.store(NONE, Ordering::SeqCst);
        }
        direct
    }

    /// Waits until the thread has done what it may have begun before it could know better.
    fn wait_for_action(&self) {
        // SeqCst, as in `act`: that sees what was stored before, or this sees that it is under way.
        // It takes nanoseconds, unless the system has interrupted the thread there. In a forked child it has vanished.
        while self.acting.load(Ordering::SeqCst) && !self.is_gone() {
            yield_now();
        }
    }

    fn wake(&self) {
        // SAFETY: a handle that is never freed.
        if let Some(thread) = unsafe { self.thread.load(Ordering::Acquire).as_ref() } {
            thread.unpark();
        }
    }

    /// The number of the window that should be open, as far as the thread has noticed.
    pub fn scheduled(&self) -> Option<u64> {
        Some(self.scheduled.load(Ordering::SeqCst)).filter(|&window| window != NONE)
    }
}
