//! Whether Ruby code is running, and how much CPU time it has used, from the VM's thread events.

#[cfg(ruby_gte_3_3)]
mod watched {
    use crate::vm::clock;
    use crate::vm::cpu_clock::{NativeId, native_id, thread_cpu_of};
    use crate::vm::ractor;
    use crate::vm::thread_events::{RESUMED, SUSPENDED, add_hook};
    use std::cell::Cell;
    use std::ffi::c_void;
    use std::sync::Once;
    use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
    use std::thread::Thread;

    /// Whether a Ruby thread has the GVL. The events of two threads are ordered: one is suspended before the other
    /// resumes. Each Ractor has a GVL of its own; once there are others, some thread is taken to run at any time.
    static RUNNING: AtomicBool = AtomicBool::new(true);
    /// The native thread that got the GVL last.
    static HOLDER: AtomicI32 = AtomicI32::new(0);
    /// For how many nanoseconds of CPU time threads have had the GVL, without the one that has it.
    static USED: AtomicU64 = AtomicU64::new(0);
    /// What that thread's own clock showed when it got the GVL; [`NOBODY`] if none has it.
    static SINCE: AtomicU64 = AtomicU64::new(NOBODY);
    /// Odd while these change, all of which a thread does that gets or gives up the GVL.
    static VERSION: AtomicU32 = AtomicU32::new(0);
    /// What [`cpu`] has returned last.
    static LAST: AtomicU64 = AtomicU64::new(0);
    /// Whether anybody wants to know: to read a thread's clock takes a system call.
    static MEASURED: AtomicBool = AtomicBool::new(false);
    const NOBODY: u64 = u64::MAX;
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
            if SINCE.load(Ordering::Relaxed) != NOBODY {
                change(|| {
                    USED.store(used_until(thread_cpu()), Ordering::SeqCst);
                    SINCE.store(NOBODY, Ordering::SeqCst);
                });
            }
            // Whoever sees this late only begins to wait a little later.
            return RUNNING.store(ractor::others(), Ordering::Relaxed);
        }
        if MEASURED.load(Ordering::Relaxed) && !ractor::others() {
            resume();
        }
        note_running();
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

    /// The calling thread has the GVL from now on.
    fn resume() {
        if ID.get() == 0 {
            ID.set(native_id());
        }
        change(|| {
            HOLDER.store(ID.get(), Ordering::SeqCst);
            SINCE.store(thread_cpu(), Ordering::SeqCst);
        });
    }

    /// For a thread that has the GVL: the VM may have said that it gives it up, and have found that it need not, as
    /// where an exception is pending. Safe in hooks.
    pub fn ensure_running() {
        if MEASURED.load(Ordering::Relaxed) && SINCE.load(Ordering::Relaxed) == NOBODY && !ractor::others() {
            resume();
            note_running();
        }
    }

    /// Measures from now on what [`cpu`] tells, or no longer. Must be called with the GVL, after [`prepare`].
    pub fn measure(measured: bool) {
        MEASURED.store(measured, Ordering::Relaxed);
        if measured {
            ensure_running();
        }
    }

    fn thread_cpu() -> u64 {
        clock::thread_cpu().as_nanos() as u64
    }

    fn change(change: impl FnOnce()) {
        VERSION.fetch_add(1, Ordering::SeqCst);
        change();
        VERSION.fetch_add(1, Ordering::SeqCst);
    }

    /// For how long threads have had the GVL when the clock of the one that has it shows `now`.
    fn used_until(now: u64) -> u64 {
        let since = SINCE.load(Ordering::SeqCst);
        let more = if since == NOBODY { 0 } else { now.saturating_sub(since) };
        USED.load(Ordering::SeqCst).saturating_add(more)
    }

    /// The CPU time in nanoseconds that Ruby threads have used while they had the GVL, since some moment before
    /// [`watch_for`] was first called; once there are other Ractors, that of all threads. Safe on any thread, and in
    /// hooks.
    pub fn cpu() -> u64 {
        if ractor::others() {
            return clock::process_cpu();
        }
        /// Threads seldom get the GVL while this is read.
        const ATTEMPTS: u32 = 3;
        for _ in 0..ATTEMPTS {
            let version = VERSION.load(Ordering::SeqCst);
            let holder = HOLDER.load(Ordering::SeqCst);
            // A thread that has ended has given up the GVL.
            let now = if holder == ID.get() { thread_cpu() } else { thread_cpu_of(holder).unwrap_or(0) };
            let used = used_until(now);
            if version % 2 == 0 && VERSION.load(Ordering::SeqCst) == version {
                LAST.store(used, Ordering::Relaxed);
                return used;
            }
        }
        LAST.load(Ordering::Relaxed)
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
        resume();
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
