//! What the handler counts, for each thread that has a timer.

use crate::vm::clock;
use crate::vm::cpu_clock::native_id;
use crate::vm::gc;
use crate::vm::safepoint::{self, Job};
use crate::vm::ticks::{Doing, Queue};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

unsafe extern "C" {
    /// thread.c; exported by every Ruby from 3.1 to 4.0. Reads variables of the calling thread.
    fn ruby_thread_has_gvl_p() -> c_int;
}

/// How many threads can have a timer at a time.
pub const MOST: usize = 1024;

/// What the handler counts for one thread. In a table that is never freed, since a signal may arrive after its timer is
/// gone.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) taken: AtomicBool,
    /// Whether a handler uses it. It may still do so after its timer is gone.
    pub(super) busy: AtomicBool,
    pub(super) ticks: Queue,
    /// The timer's number plus 1; 0 while there is none.
    pub(super) timer: AtomicUsize,
    /// Whose CPU time it counts. A late signal finds its slot taken by another thread.
    pub(super) thread: AtomicI32,
}

pub(super) static SLOTS: [Slot; MOST] = [const {
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

/// Requests `job` at each tick from now on.
pub(super) fn count_for(job: Job) {
    JOB.store(job as *mut c_void, Ordering::Release);
}

/// Counts nothing any more.
pub fn ignore() {
    JOB.store(null_mut(), Ordering::Release);
}

/// Counts nothing any more, and deletes all timers, when the VM ends: it frees the stacks that handlers run on.
pub fn end() {
    ignore();
    for slot in &SLOTS {
        let timer = slot.timer.swap(0, Ordering::SeqCst);
        if timer != 0 {
            // SAFETY: made by `Timer::new`, and deleted once, as the number was taken out. In a forked child that has
            // not dropped its parent's, it is that of no timer, or of one that ends with the process anyway.
            unsafe { libc::timer_delete((timer - 1) as libc::timer_t) };
        }
    }
}

/// How many signals were counted in this process.
pub fn signals() -> u64 {
    SIGNALS.load(Ordering::Relaxed)
}

/// The slot at that address, if it is one.
pub(super) fn slot_at(address: *mut c_void) -> Option<&'static Slot> {
    let offset = (address as usize).checked_sub(SLOTS.as_ptr() as usize)?;
    if offset % size_of::<Slot>() == 0 { SLOTS.get(offset / size_of::<Slot>()) } else { None }
}

impl Slot {
    /// Takes it, if nobody has it.
    pub(super) fn take(&self) -> bool {
        if self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        // Whoever had it before has made `timer` 0. A handler that saw it before that has become busy earlier: SeqCst on
        // both sides.
        if self.busy.load(Ordering::SeqCst) {
            self.taken.store(false, Ordering::Release);
            return false;
        }
        true
    }

    /// Counts a tick, unless this has interrupted another handler, or a late signal of an earlier owner is looked at
    /// just now: then its time counts with the next one.
    pub(super) fn tick(&self) {
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
        // SAFETY: reads a variable of the calling thread. It has the GVL, or waits for it in the VM. One that Ruby's
        // threads share names the last one, even if that has ended, while it switches to the next, and uses no CPU time
        // if there is none.
        let doing = if unsafe { ruby_thread_has_gvl_p() } == 0 {
            Doing::Released
        } else if gc::is_running() {
            Doing::Collecting
        } else {
            Doing::Running
        };
        self.ticks.add(doing, clock::thread_cpu().as_nanos() as u64);
        // SAFETY: the address of such a function, from `count_for`.
        safepoint::request(unsafe { std::mem::transmute::<*mut c_void, Job>(job) });
    }
}
