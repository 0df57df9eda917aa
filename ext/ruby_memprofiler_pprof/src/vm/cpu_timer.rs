//! Timers on the CPU clocks of native threads, whose signals are counted.
//!
//! The handler only counts, reads a clock, notes the innermost frame and asks for a job: a stack must not be read in it,
//! since the signal may come anywhere, even while the garbage collector moves objects.

use super::clock;
use super::cpu_clock::{NativeId, clock_of, native_id};
use super::errno::SavedErrno;
use super::gc;
use super::safepoint::{self, Job};
use super::ticks::{Doing, Queue, Ticks};
use crate::faults;
use std::ffi::{c_int, c_void};
use std::io;
use std::mem::zeroed;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

unsafe extern "C" {
    /// thread.c; exported by every Ruby from 3.1 to 4.0. Reads variables of the calling thread.
    fn ruby_thread_has_gvl_p() -> c_int;
}

/// How many threads can have a timer at a time.
pub const MOST: usize = 1024;

/// What the handler counts for one thread. In a table that is never freed, since a signal may arrive after its timer is
/// gone.
#[derive(Debug)]
struct Slot {
    taken: AtomicBool,
    /// Whether a handler uses it. It may still do so after its timer is gone.
    busy: AtomicBool,
    ticks: Queue,
    /// The timer's number plus 1; 0 while there is none.
    timer: AtomicUsize,
    /// Whose CPU time it counts. A late signal finds its slot taken by another thread.
    thread: AtomicI32,
}

static SLOTS: [Slot; MOST] = [const {
    Slot {
        taken: AtomicBool::new(false),
        busy: AtomicBool::new(false),
        ticks: Queue::new(),
        timer: AtomicUsize::new(0),
        thread: AtomicI32::new(0),
    }
}; MOST];

/// The job that reads the stacks; null while nobody wants ticks.
static JOB: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// The signals that came, for figures.
static SIGNALS: AtomicU64 = AtomicU64::new(0);

/// One past the greatest number of a signal.
const SIGNAL_BOUND: usize = 65;

/// What each signal did before it was taken over. A handler once installed stays: a late signal would otherwise end the
/// process.
static BEFORE: [OnceLock<Action>; SIGNAL_BOUND] = [const { OnceLock::new() }; SIGNAL_BOUND];

struct Action(libc::sigaction);

// SAFETY: numbers, and the address of a function.
unsafe impl Send for Action {}
// SAFETY: as above; never changes.
unsafe impl Sync for Action {}

/// A signal that nobody uses, from the upper end of the real-time signals; None if there is none.
pub fn free_signal() -> Option<c_int> {
    // The last one is valgrind's.
    (libc::SIGRTMIN()..libc::SIGRTMAX()).rev().find(|&signal| {
        let unused = |now: libc::sigaction| now.sa_sigaction == libc::SIG_DFL && !is_replaced(signal, &now);
        is_ours(signal) || action(signal).is_some_and(unused)
    })
}

/// Whether the handler of `signal` is this module's.
pub fn is_ours(signal: c_int) -> bool {
    action(signal).is_some_and(|action| action.sa_sigaction == handler())
}

/// Whether something else has taken `signal` over from this module's handler, and may pass signals on to it: if they
/// were passed back, that would never end.
fn is_replaced(signal: c_int, now: &libc::sigaction) -> bool {
    let before = BEFORE.get(signal as usize).and_then(OnceLock::get);
    now.sa_sigaction != handler() && before.is_some_and(|Action(before)| before.sa_sigaction != now.sa_sigaction)
}

fn handler() -> usize {
    on_signal as *const () as usize
}

fn action(signal: c_int) -> Option<libc::sigaction> {
    // SAFETY: a C struct of numbers, for which zeros are valid, and which the function fills.
    unsafe {
        let mut action = zeroed();
        (libc::sigaction(signal, null(), &raw mut action) == 0).then_some(action)
    }
}

/// Counts the ticks of timers that send `signal` from now on, and requests `job` at each. What `signal` did before it
/// still does if no timer sent it. An error says why the signal cannot be had.
pub fn listen(signal: c_int, job: Job) -> io::Result<()> {
    safepoint::prepare();
    let before =
        action(signal).filter(|_| (0..SIGNAL_BOUND as c_int).contains(&signal)).ok_or_else(io::Error::last_os_error)?;
    if is_replaced(signal, &before) {
        return Err(io::Error::other("its handler has been replaced: choose another signal"));
    }
    if before.sa_sigaction != handler() {
        BEFORE[signal as usize].get_or_init(|| Action(before));
        // SAFETY: a C struct of numbers, for which zeros are valid.
        let mut action: libc::sigaction = unsafe { zeroed() };
        action.sa_sigaction = handler();
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        // SAFETY: the function has the signature that SA_SIGINFO asks for, and only does what a handler may.
        if unsafe { libc::sigaction(signal, &raw const action, null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    JOB.store(job as *mut c_void, Ordering::Release);
    Ok(())
}

/// Counts nothing any more.
pub fn ignore() {
    JOB.store(null_mut(), Ordering::Release);
}

/// How many signals were counted in this process.
pub fn signals() -> u64 {
    SIGNALS.load(Ordering::Relaxed)
}

/// The handler. Everything in it is safe in a signal handler.
unsafe extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let _errno = SavedErrno::new();
    // SAFETY: with SA_SIGINFO the system passes valid information, in which timers set the value.
    let slot = unsafe { if (*info).si_code == libc::SI_TIMER { slot_at((*info).si_value().sival_ptr) } else { None } };
    match slot {
        Some(slot) => slot.tick(),
        // SAFETY: passes on what the system has passed.
        None => unsafe { pass_on(signal, info, context) },
    }
}

/// # Safety
/// As for a signal handler.
unsafe fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(Action(before)) = BEFORE.get(signal as usize).and_then(OnceLock::get) else { return };
    let function = before.sa_sigaction;
    if function == libc::SIG_DFL || function == libc::SIG_IGN {
        return;
    }
    // SAFETY: that was the signal's handler, of the kind that its flags say.
    unsafe {
        if before.sa_flags & libc::SA_SIGINFO == 0 {
            std::mem::transmute::<usize, extern "C" fn(c_int)>(function)(signal);
        } else {
            let function: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = std::mem::transmute(function);
            function(signal, info, context);
        }
    }
}

/// The slot at that address, if it is one.
fn slot_at(address: *mut c_void) -> Option<&'static Slot> {
    let offset = (address as usize).checked_sub(SLOTS.as_ptr() as usize)?;
    if offset % size_of::<Slot>() == 0 { SLOTS.get(offset / size_of::<Slot>()) } else { None }
}

impl Slot {
    /// Takes it, if nobody has it.
    fn take(&self) -> bool {
        if self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        // Whoever had it before has made `timer` 0. A handler that saw it before that has become busy earlier.
        if self.busy.load(Ordering::SeqCst) {
            self.taken.store(false, Ordering::Release);
            return false;
        }
        true
    }

    /// Counts a tick, unless this has interrupted another handler, or a late signal of an earlier owner is looked at
    /// just now: then its time counts with the next one.
    fn tick(&self) {
        if !self.busy.swap(true, Ordering::SeqCst) {
            self.count();
            self.busy.store(false, Ordering::Release);
        }
    }

    fn count(&self) {
        let (timer, job) = (self.timer.load(Ordering::SeqCst), JOB.load(Ordering::Acquire));
        if timer == 0 || job.is_null() || self.thread.load(Ordering::Relaxed) != native_id() {
            return;
        }
        SIGNALS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: reads a variable of the calling thread. It has the GVL, or waits for it in the VM.
        let doing = if unsafe { ruby_thread_has_gvl_p() } == 0 {
            Doing::Released
        } else if gc::is_running() {
            Doing::Collecting
        } else {
            Doing::Running
        };
        self.ticks.add(doing, clock::thread_cpu().as_nanos() as u64);
        // SAFETY: the address of such a function, from `listen`.
        safepoint::request(unsafe { std::mem::transmute::<*mut c_void, Job>(job) });
    }
}

/// A timer on the CPU clock of one thread, which it sends signals to. Deleted when dropped, by the process that made it:
/// a forked child has not inherited it, and what has its number there is another one.
#[derive(Debug)]
pub struct Timer {
    slot: &'static Slot,
    process: u32,
}

impl Timer {
    /// A timer of `thread` that sends `signal` first after `first` of CPU time, and then once per `period`.
    pub fn new(thread: NativeId, signal: c_int, first: Duration, period: Duration) -> io::Result<Self> {
        if faults::denied("timer_create") {
            return Err(io::Error::from_raw_os_error(libc::EAGAIN));
        }
        let Some(slot) = SLOTS.iter().find(|slot| slot.take()) else {
            return Err(io::Error::other(format!("{MOST} threads have timers")));
        };
        slot.thread.store(thread, Ordering::Relaxed);
        slot.ticks.clear();
        let mut timer: libc::timer_t = null_mut();
        // SAFETY: the struct is valid where what is not set is 0, and the timer is stored in the variable given.
        let made = unsafe {
            let mut event: libc::sigevent = zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_value.sival_ptr = std::ptr::from_ref(slot).cast_mut().cast();
            event.sigev_notify_thread_id = thread;
            libc::timer_create(clock_of(thread), &raw mut event, &raw mut timer) == 0
        };
        if !made {
            let error = io::Error::last_os_error();
            slot.taken.store(false, Ordering::Release);
            return Err(error);
        }
        slot.timer.store(timer as usize + 1, Ordering::Release);
        let time = libc::itimerspec { it_interval: timespec(period), it_value: timespec(first) };
        // SAFETY: the timer was just made.
        unsafe { libc::timer_settime(timer, 0, &raw const time, null_mut()) };
        Ok(Self { slot, process: std::process::id() })
    }

    /// Has it noted where the thread is at its ticks.
    ///
    /// # Safety
    /// `data` must be the thread's `rb_thread_t`, and exist until the timer is dropped. If the native thread runs another
    /// one until then, the VM must have taken the frames from this one.
    pub unsafe fn follow(&self, data: *const u8) {
        // SAFETY: only the native thread's own handler adds ticks, as long as the timer has the slot.
        unsafe { self.slot.ticks.follow(data) };
    }

    /// Takes the ticks that have waited longest; None if none wait.
    pub fn take(&self) -> Option<Ticks> {
        self.slot.ticks.take()
    }

    /// Whether there are ticks.
    pub fn has_ticks(&self) -> bool {
        !self.slot.ticks.is_empty()
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let timer = self.slot.timer.swap(0, Ordering::SeqCst);
        if self.process != std::process::id() {
            // A thread that was in the handler when this process was forked is not here.
            self.slot.busy.store(false, Ordering::Relaxed);
        } else if timer != 0 {
            // SAFETY: made by `new` in this process, and deleted once.
            unsafe { libc::timer_delete((timer - 1) as libc::timer_t) };
        }
        // SAFETY: no thread is followed.
        unsafe { self.slot.ticks.follow(null()) };
        self.slot.taken.store(false, Ordering::Release);
    }
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: time.subsec_nanos() as _ }
}
