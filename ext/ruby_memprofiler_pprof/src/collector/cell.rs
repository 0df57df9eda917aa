//! State that hooks and the API share.

#[cfg(not(ruby_gte_4_0))]
use crate::faults;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Gives out one exclusive borrow at a time. A hook never waits for it: up to Ruby 3.4 the GVL already makes sure that
/// nobody else has it; from 4.0 on, another Ractor may be in its own hook or in a flush.
#[derive(Debug)]
pub struct HookCell<T> {
    busy: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `busy` admits one borrow at a time, on whatever thread.
unsafe impl<T: Send> Sync for HookCell<T> {}

impl<T> HookCell<T> {
    /// A cell that is not in use.
    pub fn new(value: T) -> Self {
        Self { busy: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Runs `body` with the value, or returns None if it is in use.
    #[inline]
    pub fn try_with<R>(&self, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        if !self.enter() {
            return None;
        }
        let _guard = Leave(&self.busy);
        // SAFETY: `enter` succeeded, so no other borrow exists until the guard drops.
        Some(body(unsafe { &mut *self.value.get() }))
    }

    /// Runs `body` with the value. `body` must neither allocate on Ruby's heap, nor call Ruby code, nor release the
    /// GVL: a hook would then find the cell in use. Whoever else has it is in such a body too, so the wait is short.
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

    /// Runs `body` with the value for a look at it, in a hook. Up to Ruby 3.4 this takes no claim: hooks come one after
    /// the other, and none while another body runs.
    ///
    /// # Safety
    /// In a hook, not nested in another body.
    #[inline]
    pub unsafe fn look<R>(&self, body: impl FnOnce(&T) -> R) -> R {
        if cfg!(ruby_gte_4_0) {
            return self.with(|value| body(value));
        }
        // SAFETY: nobody writes: up to Ruby 3.4 hooks run one at a time, and this one runs inside no other body.
        body(unsafe { &*self.value.get() })
    }

    #[cfg(not(ruby_gte_4_0))]
    #[inline]
    fn enter(&self) -> bool {
        // The GVL orders all accesses, so a plain load and store do.
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
