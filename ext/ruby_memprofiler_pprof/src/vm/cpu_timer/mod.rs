//! Timers on the CPU clocks of native threads, whose signals are counted.
//!
//! The handler only counts, reads a clock, notes the innermost frame and asks for a job: a stack must not be read in it,
//! since the signal may come anywhere, even while the garbage collector moves objects.

mod signal;
mod slot;

pub use signal::{free_signal, is_ours, listen};
pub use slot::{end, ignore, signals};

use super::cpu_clock::{NativeId, clock_of};
use super::ticks::Ticks;
use crate::faults;
use slot::{MOST, SLOTS, Slot};
use std::ffi::c_int;
use std::io;
use std::mem::zeroed;
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering;
use std::time::Duration;

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
    libc::timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos() as _ }
}
