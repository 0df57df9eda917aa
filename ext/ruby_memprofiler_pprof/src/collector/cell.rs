//! State shared by hooks and the API.

#[cfg(not(ruby_gte_4_0))]
use crate::faults;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Nobody has the cell.
const FREE: u32 = 0;
/// A thread with a GVL has it. Anything else is the process id of a thread without.
const TAKEN: u32 = u32::MAX;

/// Allows one borrow at a time. A hook that samples never waits for it. Up to Ruby 3.4 the GVL already keeps everybody
/// else out but the thread that watches the memory, which reads for a moment; from 4.0 on another Ractor may have it, in
/// a hook or in a flush.
#[derive(Debug)]
pub struct HookCell<T> {
    busy: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: `busy` admits one exclusive borrow at a time, on any thread.
unsafe impl<T: Send> Sync for HookCell<T> {}

impl<T> HookCell<T> {
    /// A cell that is not in use.
    pub fn new(value: T) -> Self {
        Self { busy: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
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
    /// would then find the cell in use. Any other borrower is in such a body, too, so the wait is short, except for
    /// [`look_without_gvl`](Self::look_without_gvl).
    pub fn with<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        while !self.enter() {
            self.wait();
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

    /// Runs `body` with read access to the value, on a thread that does not have the GVL. None if the cell stays in use
    /// for as long as `patience`. Whoever wants the value meanwhile waits, or does without it.
    pub fn look_without_gvl<R>(&self, patience: Duration, body: impl FnOnce(&T) -> R) -> Option<R> {
        let start = Instant::now();
        while !self.enter_as(std::process::id()) {
            if start.elapsed() > patience {
                return None;
            }
            thread::yield_now();
        }
        let _guard = Leave(&self.busy);
        // SAFETY: nobody writes until the guard drops; a hook that only looks may read at the same time.
        Some(body(unsafe { &*self.value.get() }))
    }

    /// Replaces the value if a thread had the cell that a fork has left behind, which can only be one of another
    /// Ractor. What it was changing is not used any more, and not even dropped. Whether there was such a thread.
    ///
    /// # Safety
    /// Must be called in a forked child, by its only thread, and not inside a body.
    pub unsafe fn abandon_if_taken(&self, value: impl FnOnce() -> T) -> bool {
        if self.busy.load(Ordering::Relaxed) != TAKEN {
            return false;
        }
        // SAFETY: the thread that had it does not exist here, and no other does, as required above.
        unsafe { self.value.get().write(value()) };
        self.busy.store(FREE, Ordering::Release);
        true
    }

    #[inline]
    fn enter(&self) -> bool {
        self.enter_as(TAKEN)
    }

    #[inline]
    fn enter_as(&self, who: u32) -> bool {
        self.busy.compare_exchange(FREE, who, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn wait(&self) {
        match self.busy.load(Ordering::Relaxed) {
            FREE => {}
            TAKEN => {
                #[cfg(not(ruby_gte_4_0))]
                faults::blocks("state");
                std::hint::spin_loop();
            }
            reader if reader == std::process::id() => thread::yield_now(),
            // That of the process which this one was forked from, meanwhile; it only read.
            reader => {
                let _ = self.busy.compare_exchange(reader, FREE, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }
}

struct Leave<'a>(&'a AtomicU32);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.store(FREE, Ordering::Release);
    }
}
