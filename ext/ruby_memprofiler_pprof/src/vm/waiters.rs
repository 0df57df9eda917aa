//! Whether another thread waits for the GVL.

#[cfg(ruby_gte_3_2)]
mod counted {
    use std::ffi::c_void;
    use std::ptr::{null, null_mut};
    use std::sync::Once;
    use std::sync::atomic::{AtomicIsize, Ordering};

    // include/ruby/thread.h; declared here because bindgen's types for it differ between minors.
    unsafe extern "C" {
        fn rb_internal_thread_add_event_hook(
            hook: unsafe extern "C" fn(u32, *const c_void, *mut c_void),
            events: u32,
            data: *mut c_void,
        ) -> *const c_void;
    }

    const READY: u32 = 1 << 1;
    const RESUMED: u32 = 1 << 2;

    /// Threads that want the GVL and do not have it yet.
    static WAITING: AtomicIsize = AtomicIsize::new(0);
    static HOOK: Once = Once::new();

    unsafe extern "C" fn on_event(event: u32, _thread: *const c_void, _data: *mut c_void) {
        WAITING.fetch_add(if event == READY { 1 } else { -1 }, Ordering::Relaxed);
    }

    /// Begins to count, the first time it is called.
    pub fn watch() {
        HOOK.call_once(|| {
            // SAFETY: the function only counts, which is allowed without the GVL, and stays for as long as the process.
            let hook = unsafe { rb_internal_thread_add_event_hook(on_event, READY | RESUMED, null_mut()) };
            debug_assert_ne!(hook, null());
        });
    }

    /// Whether a thread waits. Threads that were ready before counting began, or before a fork, may make it wrong by
    /// some, so it is but a hint.
    pub fn any() -> bool {
        WAITING.load(Ordering::Relaxed) > 0
    }

    /// In a forked child, where all other threads are gone.
    pub fn forget() {
        WAITING.store(0, Ordering::Relaxed);
    }
}

#[cfg(not(ruby_gte_3_2))]
mod counted {
    /// Ruby 3.1 does not tell.
    pub fn watch() {}

    /// Ruby 3.1 does not tell; to offer the GVL costs little when nobody wants it.
    pub fn any() -> bool {
        true
    }

    /// Nothing to forget.
    pub fn forget() {}
}

pub use counted::{any, forget, watch};
