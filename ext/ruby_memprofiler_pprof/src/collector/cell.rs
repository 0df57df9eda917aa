//! State shared by hooks and the API.

#[cfg(not(ruby_gte_4_0))]
use crate::faults;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Allows one exclusive borrow at a time. A hook never waits for it: up to Ruby 3.4 the GVL already ensures that nobody
/// else has it; from 4.0 on, another Ractor may be in its own hook or in a flush.
#[derive(Debug)]
pub struct HookCell<T> {
    busy: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `busy` admits one borrow at a time, on any thread.
unsafe impl<T: Send> Sync for HookCell<T> {}

impl<T> HookCell<T> {
    /// A cell that is not in use.
    pub fn new(value: T) -> Self {
        Self { busy: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Runs `body` with the value, or returns None if the cell is in use.
    #[inline]
    pub fn try_with<R>(&self, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        if !self.enter() {
            return None;
        }
        let _guard = Leave(&self.busy);
        // SAFETY: `enter` succeeded, so no other borrow exists until the guard drops.
        Some(body(unsafe { &mut *self.value.get() }))
    }

    /// Runs `body` with the value. `body` must not allocate on Ruby's heap, call Ruby code or release the GVL: a hook
    /// would then find the cell in use. Any other borrower is in such a body, too, so the wait is short.
    pub fn with<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        while !self.enter() {
            #[cfg(not(ruby_gte_4_0))]
            faults::blocks("state");
            std::hint::spin_loop();
        }
        let _guard = Leave(&self.busy);
        // SAFETY: `enter` succeeded at last, so no other borrow exists until the guard drops.
        body(unsafe { &mut *self.value.get() })
    }

    /// Runs `body` with read access to the value, in a hook. Up to Ruby 3.4 this claims nothing: hooks run one after
    /// another, and none runs while another body does.
    ///
    /// # Safety
    /// Must be called in a hook, and not inside another body.
    #[inline]
    pub unsafe fn look<R>(&self, body: impl FnOnce(&T) -> R) -> R {
        if cfg!(ruby_gte_4_0) {
            return self.with(|value| body(value));
        }
        // SAFETY: nobody writes: up to Ruby 3.4 hooks run one at a time, and this one is not inside another body.
        body(unsafe { &*self.value.get() })
    }

    #[cfg(not(ruby_gte_4_0))]
    #[inline]
    fn enter(&self) -> bool {
        // The GVL orders all accesses, so a plain load and store are enough.
        !self.busy.load(Ordering::Relaxed) && {
            self.busy.store(true, Ordering::Relaxed);
            true
        }
    }

    #[cfg(ruby_gte_4_0)]
    #[inline]
    fn enter(&self) -> bool {
        !self.busy.swap(true, Ordering::Acquire)
    }
}

struct Leave<'a>(&'a AtomicBool);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
