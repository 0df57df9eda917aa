//! Finds native threads that run Ruby code when they get the GVL: those of other Ractors, of whose threads no hook is
//! told, and those that M:N threads share. Ruby 3.3 and later.

#[cfg(ruby_gte_3_3)]
mod watched {
    use crate::cpu::{Options, job};
    use crate::vm::cpu_clock::{NativeId, native_id, thread_cpu_of};
    use crate::vm::cpu_timer::Timer;
    use crate::vm::safepoint;
    use crate::vm::thread_events::{RESUMED, add_hook};
    use std::cell::Cell;
    use std::ffi::c_void;
    use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
    use std::sync::{Mutex, Once};
    use std::time::Duration;

    /// The number of the sampler's beginning for which threads are to be found; 0 for none.
    static WANTED: AtomicU64 = AtomicU64::new(0);
    static PERIOD: AtomicU64 = AtomicU64::new(0);
    static SIGNAL: AtomicI32 = AtomicI32::new(0);

    /// Timers of threads that are not known yet. A request for the job may be lost, as another Ractor runs the job
    /// instead; each tick repeats it.
    static SCOUTS: Mutex<Vec<(NativeId, Timer)>> = Mutex::new(Vec::new());

    thread_local! {
        /// The beginning for which this native thread is known, or has a scout.
        static KNOWN: Cell<u64> = const { Cell::new(0) };
    }

    unsafe extern "C" fn on_resumed(_event: u32, _thread: *const c_void, _data: *mut c_void) {
        let wanted = WANTED.load(Ordering::Acquire);
        if wanted == 0 || KNOWN.get() == wanted {
            return;
        }
        safepoint::request(job::run);
        let (period, signal) = (PERIOD.load(Ordering::Relaxed), SIGNAL.load(Ordering::Relaxed));
        let (native, period) = (native_id(), Duration::from_nanos(period));
        if let Ok(mut scouts) = SCOUTS.try_lock() {
            if WANTED.load(Ordering::Acquire) != wanted {
                return;
            }
            scouts.extend(Timer::new(native, signal, period, period).ok().map(|timer| (native, timer)));
            KNOWN.set(wanted);
        }
    }

    /// Has [`want`] find a hook, which does nothing until then. Must be called with the GVL, and first before forks, as
    /// [`add_hook`] says.
    pub fn prepare() {
        static HOOK: Once = Once::new();
        // SAFETY: called with the GVL; the function waits for nothing, and exists as long as the process.
        HOOK.call_once(|| unsafe { add_hook(on_resumed, RESUMED) });
    }

    /// Has native threads found from now on, for this beginning. Must be called with the GVL, after [`prepare`].
    pub fn want(beginning: u64, options: &Options) {
        PERIOD.store(options.period.as_nanos() as u64, Ordering::Relaxed);
        SIGNAL.store(options.signal, Ordering::Relaxed);
        WANTED.store(beginning, Ordering::Release);
    }

    /// Has none found any more.
    pub fn end() {
        WANTED.store(0, Ordering::Relaxed);
        if let Ok(mut scouts) = SCOUTS.try_lock() {
            scouts.clear();
        }
    }

    /// Frees the timers of threads that have ended before they were known.
    pub fn forget_ended() {
        if let Ok(mut scouts) = SCOUTS.try_lock() {
            scouts.retain(|&(native, _)| thread_cpu_of(native).is_some());
        }
    }

    /// The calling native thread is known, for what is wanted now.
    pub fn know() {
        KNOWN.set(WANTED.load(Ordering::Relaxed));
        if let Ok(mut scouts) = SCOUTS.try_lock() {
            if !scouts.is_empty() {
                let native = native_id();
                scouts.retain(|&(scout, _)| scout != native);
            }
        }
    }
}

#[cfg(not(ruby_gte_3_3))]
mod watched {
    /// The VM does not say who gets the GVL.
    pub fn prepare() {}

    /// As above.
    pub fn want(_beginning: u64, _options: &crate::cpu::Options) {}

    /// As above.
    pub fn end() {}

    /// As above.
    pub fn forget_ended() {}

    /// As above.
    pub fn know() {}
}

pub use watched::{end, forget_ended, know, prepare, want};
