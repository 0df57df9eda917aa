//! The VM's thread events: whether a thread waits for the GVL, and whether there are other Ractors.

#[cfg(ruby_gte_3_2)]
mod counted {
    use crate::vm::ractor;
    use std::ffi::c_void;
    use std::ptr::{null, null_mut};
    use std::sync::Once;
    use std::sync::atomic::{AtomicUsize, Ordering};

    // include/ruby/thread.h; declared here because bindgen's types for it differ between minors.
    unsafe extern "C" {
        fn rb_internal_thread_add_event_hook(hook: EventHook, events: u32, data: *mut c_void) -> *const c_void;
    }

    const READY: u32 = 1 << 1;
    /// A thread has got the GVL.
    pub const RESUMED: u32 = 1 << 2;
    /// A thread is about to give up the GVL.
    #[cfg(ruby_gte_3_3)]
    pub const SUSPENDED: u32 = 1 << 3;

    /// A function that the VM calls at a thread's event, with or without the GVL, under the scheduler's locks. It must
    /// not touch Ruby or wait.
    pub type EventHook = unsafe extern "C" fn(event: u32, thread: *const c_void, data: *mut c_void);

    /// The number of threads that want the GVL and do not have it yet.
    static WAITING: AtomicUsize = AtomicUsize::new(0);
    static HOOK: Once = Once::new();

    unsafe extern "C" fn on_event(event: u32, _thread: *const c_void, _data: *mut c_void) {
        if event == READY {
            WAITING.fetch_add(1, Ordering::Relaxed);
        } else {
            // Some threads resume without having been seen to become ready. A number below 0 would hide others forever.
            let _ = WAITING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| waiting.checked_sub(1));
            // In Ruby 3.2 a new thread has no execution context yet.
            if cfg!(ruby_gte_3_3) && !ractor::others() && !ractor::is_main() {
                ractor::note_others();
            }
        }
    }

    /// Has `hook` called at `events` from now on, for good. A forked child of a process with hooks can neither add nor
    /// remove one: another thread may have had the VM's lock for reading when the process was forked, and nobody gives
    /// that back (Ruby bug 21959, mended in 3.3.11, 3.4.11 and 4.0.5). So all hooks are added when sampling first
    /// starts.
    ///
    /// # Safety
    /// Must be called with the GVL.
    pub unsafe fn add_hook(hook: EventHook, events: u32) {
        // SAFETY: a function that does what it may exists as long as the process.
        let hook = unsafe { rb_internal_thread_add_event_hook(hook, events, null_mut()) };
        debug_assert_ne!(hook, null());
    }

    /// Starts counting, at the first call. The main Ractor must be known.
    pub fn watch() {
        // SAFETY: called with the GVL. The function counts and reads.
        HOOK.call_once(|| unsafe { add_hook(on_event, READY | RESUMED) });
    }

    /// Whether a thread waits. Only a hint: threads that were ready before counting began, or before a fork, can make
    /// the count slightly wrong.
    pub fn any_waiting() -> bool {
        WAITING.load(Ordering::Relaxed) > 0
    }

    /// For a forked child, where all other threads are gone.
    pub fn forget() {
        WAITING.store(0, Ordering::Relaxed);
    }
}

#[cfg(not(ruby_gte_3_2))]
mod counted {
    /// Ruby 3.1 has no such events.
    pub fn watch() {}

    /// Ruby 3.1 has no such events; offering the GVL costs little when nobody wants it.
    pub fn any_waiting() -> bool {
        true
    }

    /// Nothing to forget.
    pub fn forget() {}
}

#[cfg(ruby_gte_3_3)]
pub use counted::{RESUMED, SUSPENDED, add_hook};
pub use counted::{any_waiting, forget, watch};
