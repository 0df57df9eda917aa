//! Whether Ruby code is running, and how much CPU time it has used, from the VM's thread events.

#[cfg(ruby_gte_3_3)]
mod watched {
    use crate::vm::clock;
    use crate::vm::cpu_clock::{NativeId, native_id, thread_cpu_of};
    use crate::vm::ractor;
    use crate::vm::thread_events::{RESUMED, SUSPENDED, add_hook};
    use memprofiler_core::windows::{Clocks, GvlClock};
    use std::cell::Cell;
    use std::ffi::c_void;
    use std::sync::Once;
    use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
    use std::thread::Thread;

    /// Whether a Ruby thread has the GVL. The events of two threads are ordered: one is suspended before the other
    /// resumes. Each Ractor has a GVL of its own; once there are others, some thread is taken to run at any time.
    static RUNNING: AtomicBool = AtomicBool::new(true);
    /// How much CPU time threads have used with the GVL.
    static USED: GvlClock = GvlClock::new();
    /// Whether anybody wants to know.
    static MEASURED: AtomicBool = AtomicBool::new(false);
    /// Whether `WAITER` waits for a Ruby thread to resume.
    static WAITING: AtomicBool = AtomicBool::new(false);
    static WAITER: AtomicPtr<Thread> = AtomicPtr::new(std::ptr::null_mut());
    static HOOK: Once = Once::new();

    thread_local! {
        /// The calling thread's own number, since to ask for it takes a system call; 0 until then.
        static ID: Cell<NativeId> = const { Cell::new(0) };
    }

    unsafe extern "C" fn on_event(event: u32, _thread: *const c_void, _data: *mut c_void) {
        if WAITER.load(Ordering::Relaxed).is_null() {
            return;
        }
        if event != RESUMED {
            USED.give_up(&ThisThread);
            // Whoever sees this late only begins to wait a little later.
            return RUNNING.store(ractor::others(), Ordering::Relaxed);
        }
        if is_measured() {
            USED.take(&ThisThread);
        }
        note_running();
    }

    fn is_measured() -> bool {
        MEASURED.load(Ordering::Relaxed) && !ractor::others()
    }

    fn note_running() {
        // Either `wait` sees this, or the load below sees that it waits: SeqCst on both sides.
        RUNNING.store(true, Ordering::SeqCst);
        if WAITING.load(Ordering::SeqCst) && WAITING.swap(false, Ordering::SeqCst) {
            // SAFETY: a handle set by `watch_for`, which is never freed.
            if let Some(waiter) = unsafe { WAITER.load(Ordering::Acquire).as_ref() } {
                waiter.unpark();
            }
        }
    }

    /// For a thread that has the GVL: the VM may have said that it gives it up, and have found that it need not, as
    /// where an exception is pending. Safe in hooks.
    pub fn ensure_running() {
        if is_measured() {
            USED.keep(&ThisThread);
            if !is_running() {
                note_running();
            }
        }
    }

    /// Measures from now on what [`cpu`] tells, or no longer. Must be called with the GVL, after [`prepare`].
    pub fn measure(measured: bool) {
        MEASURED.store(measured, Ordering::Relaxed);
        if measured {
            ensure_running();
        } else {
            USED.stop(&ThisThread);
        }
    }

    /// The clocks of the system.
    struct ThisThread;

    impl Clocks for ThisThread {
        fn id(&self) -> NativeId {
            if ID.get() == 0 {
                ID.set(native_id());
            }
            ID.get()
        }

        fn real(&self) -> u64 {
            clock::monotonic()
        }

        fn cpu(&self) -> u64 {
            clock::thread_cpu().as_nanos() as u64
        }

        fn cpu_of(&self, thread: NativeId) -> Option<u64> {
            thread_cpu_of(thread)
        }
    }

    /// The CPU time in nanoseconds that Ruby threads have used while they had the GVL, since some moment before
    /// [`watch_for`] was first called, as [`GvlClock`] knows it; once there are other Ractors, that of all threads.
    /// Safe on any thread, and in hooks.
    pub fn cpu() -> u64 {
        if ractor::others() { clock::process_cpu() } else { USED.now(&ThisThread) }
    }

    /// Has [`watch_for`] find a hook, which does nothing until then. Must be called with the GVL, and first before
    /// forks, as [`add_hook`] says.
    pub fn prepare() {
        // SAFETY: called with the GVL. The function only uses atomics and wakes a thread, which is allowed without the
        // GVL and under the scheduler's locks, and exists as long as the process.
        HOOK.call_once(|| unsafe { add_hook(on_event, SUSPENDED | RESUMED) });
    }

    /// Starts watching on behalf of `waiter`, the only thread that may [`wait`]. Must be called by a Ruby thread with
    /// the GVL, after [`prepare`]. The handles of all waiters are kept: there is one in each process.
    pub fn watch_for(waiter: Thread) {
        RUNNING.store(true, Ordering::SeqCst);
        // Of a forked child the only thread has another number than in its parent.
        ID.set(native_id());
        USED.take(&ThisThread);
        WAITER.store(Box::into_raw(Box::new(waiter)), Ordering::Release);
    }

    /// For a forked child, whose only thread has another number than in its parent.
    pub fn forget() {
        ID.set(0);
    }

    /// Waits until a Ruby thread runs. May return early.
    pub fn wait() {
        // See `on_event`.
        WAITING.store(true, Ordering::SeqCst);
        if !RUNNING.load(Ordering::SeqCst) {
            std::thread::park();
        }
        WAITING.store(false, Ordering::SeqCst);
    }

    /// Whether a Ruby thread runs.
    pub fn is_running() -> bool {
        RUNNING.load(Ordering::SeqCst)
    }
}

#[cfg(not(ruby_gte_3_3))]
mod watched {
    use std::thread::{Thread, park};

    /// Nobody samples in windows before Ruby 3.3.
    pub fn prepare() {}

    /// As above.
    pub fn watch_for(_: Thread) {}

    /// As above.
    pub fn forget() {}

    /// As above.
    pub fn wait() {
        park();
    }

    /// As above.
    pub fn is_running() -> bool {
        false
    }

    /// As above.
    pub fn cpu() -> u64 {
        0
    }

    /// As above.
    pub fn ensure_running() {}

    /// As above.
    pub fn measure(_: bool) {}
}

pub use watched::{cpu, ensure_running, forget, is_running, measure, prepare, wait, watch_for};
