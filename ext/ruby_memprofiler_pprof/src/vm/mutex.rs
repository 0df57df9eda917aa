//! Ruby's locks.

use super::protect;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, Value};
use rb_sys::{Qtrue, VALUE};

/// A locked Thread::Mutex, unlocked when dropped.
#[derive(Debug)]
pub struct Locked(VALUE);

impl Locked {
    /// Waits for `mutex`. Fails with the exception that was raised in this thread meanwhile, or with Ruby's own if
    /// waiting is not allowed here.
    pub fn new(mutex: Value) -> Result<Self, Error> {
        let mutex = mutex.as_raw();
        // SAFETY: the GVL is held and no borrow is alive across the call.
        protect(|| unsafe { rb_sys::rb_mutex_lock(mutex) }).map(Self).inspect_err(|_| Self::pass_on(mutex))
    }

    /// Wakes the next thread that waits for `mutex`, if it is unlocked. Ruby (up to 4.0) wakes one when it unlocks; if
    /// that one is killed before it has locked, the others would sleep until somebody else comes.
    fn pass_on(mutex: VALUE) {
        // SAFETY: the GVL is held. It does not wait, nor raise.
        if unsafe { rb_sys::rb_mutex_trylock(mutex) } == Qtrue as VALUE {
            drop(Self(mutex));
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: the GVL is held. Unlike the method, the C function does not end by checking interrupts, which would
        // discard the result for which the lock was held. It fails only if the lock is not held.
        let _ = protect(|| unsafe { rb_sys::rb_mutex_unlock(self.0) });
    }
}
