//! Whether Ruby code is running, from the VM's thread events.

#[cfg(ruby_gte_3_3)]
mod watched {
    use crate::vm::cpu_clock::{NativeId, native_id};
    use crate::vm::ractor;
    use crate::vm::thread_events::{RESUMED, SUSPENDED, add_hook};
    use std::cell::Cell;
    use std::ffi::c_void;
    use std::sync::Once;
    use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
    use std::thread::Thread;

    /// Whether a Ruby thread has the GVL. The events of two threads are ordered: one is suspended before the other
    /// resumes. Each Ractor has a GVL of its own; once there are others, some thread is taken to run at any time.
    static RUNNING: AtomicBool = AtomicBool::new(true);
    /// The native thread that got the GVL last.
    static HOLDER: AtomicI32 = AtomicI32::new(0);
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
            // Whoever sees this late only begins to wait a little later.
            return RUNNING.store(ractor::others(), Ordering::Relaxed);
        }
        // Either `wait` sees this, or the load below sees that it waits: SeqCst on both sides.
        RUNNING.store(true, Ordering::SeqCst);
        if ID.get() == 0 {
            ID.set(native_id());
        }
        HOLDER.store(ID.get(), Ordering::Relaxed);
        if WAITING.load(Ordering::SeqCst) && WAITING.swap(false, Ordering::SeqCst) {
            // SAFETY: a handle set by `watch_for`, which is never freed.
            if let Some(waiter) = unsafe { WAITER.load(Ordering::Acquire).as_ref() } {
                waiter.unpark();
            }
        }
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
        ID.set(native_id());
        HOLDER.store(ID.get(), Ordering::Relaxed);
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

    /// The native thread that got the GVL last; of several Ractors, any one's.
    pub fn holder() -> NativeId {
        HOLDER.load(Ordering::Relaxed)
    }
}

#[cfg(not(ruby_gte_3_3))]
mod watched {
    use crate::vm::cpu_clock::NativeId;
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
    pub fn holder() -> NativeId {
        0
    }
}

pub use watched::{forget, holder, is_running, prepare, wait, watch_for};
