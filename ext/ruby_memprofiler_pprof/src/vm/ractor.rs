//! Which Ractor is running. For code that may run in any: hooks from Ruby 4.0 on, and postponed jobs.

use super::symbols::lookup;
use super::{protect, safepoint};
use magnus::{Error, Module, Ruby, Value, prelude::*};
use rb_sys::{Qtrue, VALUE, rb_ractor_local_key_t};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// `VALUE rb_vm_lock_with_barrier(VALUE (*func)(void *), void *)`, vm_sync.c. Exported, but in no public header.
type WithBarrier = unsafe extern "C" fn(unsafe extern "C" fn(*mut c_void) -> VALUE, *mut c_void) -> VALUE;

/// Shows that the main Ractor is running, with the GVL, where hooks may be added and removed.
#[derive(Debug, Clone, Copy)]
pub struct MainRactor(PhantomData<*const ()>);

impl MainRactor {
    /// # Safety
    /// Must be called on the main Ractor with the GVL held, and not in a hook. In a hook only to remove hooks, and from
    /// Ruby 4.0 on only if there are no other Ractors: they may be waiting for this one.
    pub unsafe fn new() -> Self {
        Self(PhantomData)
    }

    /// For a postponed job: None if it runs elsewhere, or has no room to work.
    ///
    /// # Safety
    /// Must be called at a safe point of a Ruby thread.
    pub unsafe fn in_job() -> Option<Self> {
        (is_main() && safepoint::has_room()).then_some(Self(PhantomData))
    }

    /// Runs `work` while no other Ractor runs Ruby code or is in a hook. Only Ruby 4.0 needs this, and only it has the
    /// function.
    pub(super) fn alone<F: FnMut()>(self, mut work: F) {
        static BARRIER: OnceLock<Option<WithBarrier>> = OnceLock::new();
        unsafe extern "C" fn run<F: FnMut()>(work: *mut c_void) -> VALUE {
            // SAFETY: the pointer passed below, to a closure that nobody else uses meanwhile.
            unsafe { (*work.cast::<F>())() };
            Qtrue as VALUE
        }
        let barrier = *BARRIER.get_or_init(|| {
            let found = if cfg!(ruby_gte_4_0) { lookup(c"rb_vm_lock_with_barrier") } else { None };
            // SAFETY: the function has this type where it exists.
            found.map(|function| unsafe { std::mem::transmute::<*mut c_void, WithBarrier>(function) })
        });
        match barrier {
            Some(barrier) => {
                // SAFETY: the GVL is held, and no other Ractor waits for this one. `run` gets the pointer it expects;
                // the VM releases its lock even if `work` is left by a jump.
                unsafe { barrier(run::<F>, (&raw mut work).cast()) };
            }
            None => work(),
        }
    }

    /// Records which Ractor is the main one.
    pub fn mark(self) -> Result<(), Error> {
        if MAIN.get().is_none() {
            // SAFETY: on the main Ractor, which owns this storage, and not in a hook; true is not a heap reference.
            let key = protect(|| unsafe {
                let key = rb_sys::rb_ractor_local_storage_value_newkey();
                rb_sys::rb_ractor_local_storage_value_set(key, Qtrue as VALUE);
                Key(key)
            })?;
            MAIN.get_or_init(|| key);
        }
        Ok(())
    }
}

struct Key(rb_ractor_local_key_t);

// SAFETY: a key means the same in every Ractor, and is never freed.
unsafe impl Send for Key {}
// SAFETY: it is only read once it is set, and then means the same everywhere.
unsafe impl Sync for Key {}

static MAIN: OnceLock<Key> = OnceLock::new();

/// Whether the main Ractor is running. False if it is unknown. Safe in hooks.
pub fn is_main() -> bool {
    let mut value: VALUE = 0;
    // SAFETY: on a Ruby thread; looks into a table of the Ractor's own, which allocates nothing.
    MAIN.get().is_some_and(|key| unsafe { rb_sys::rb_ractor_local_storage_value_lookup(key.0, &raw mut value) })
}

/// How many Ractors Ruby says there are.
///
/// # Errors
/// What Ruby raises.
pub fn count(ruby: &Ruby) -> Result<usize, Error> {
    let Ok(class) = ruby.class_object().const_get::<_, Value>("Ractor") else { return Ok(1) };
    class.funcall("count", ())
}

/// Why the heap is not read, if there is more than one.
pub const BESIDE_OTHERS: &str = "the heap cannot be read while there are other Ractors: try again when they have ended";

static OTHERS: AtomicBool = AtomicBool::new(false);

/// Records that there are, or will be, Ractors other than the main one.
pub fn note_others() {
    OTHERS.store(true, Ordering::Relaxed);
}

/// Whether there has been another Ractor since the first start. It is noticed before it runs anything, but up to Ruby
/// 3.2 not one that C code creates. Safe in hooks.
pub fn others() -> bool {
    OTHERS.load(Ordering::Relaxed)
}
