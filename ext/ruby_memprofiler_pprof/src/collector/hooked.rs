//! The collectors that have hooks.

use super::{Collector, Phase};
use crate::faults;
use crate::vm::protect;
use magnus::Error;
use rb_sys::VALUE;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Their Ruby objects, which are registered as roots and so stay in place, and their addresses. Only locked for
/// moments, with the GVL held, never in a hook.
static HOOKED: Mutex<Vec<(VALUE, usize)>> = Mutex::new(Vec::new());

fn list() -> MutexGuard<'static, Vec<(VALUE, usize)>> {
    faults::blocks("collectors");
    HOOKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The Ruby objects of all collectors with hooks, in the order in which they got them.
pub fn hooked() -> Vec<VALUE> {
    list().iter().map(|&(holder, _)| holder).collect()
}

/// Calls `body`, which may run Ruby code, with each collector that has hooks.
pub fn each(mut body: impl FnMut(&Collector)) {
    // Not in the loop's head, which would hold the lock throughout.
    let collectors = list().clone();
    for (holder, collector) in collectors {
        if hooked().contains(&holder) {
            // SAFETY: a collector with hooks is alive.
            body(unsafe { &*(collector as *const Collector) });
        }
    }
}

impl Collector {
    /// Keeps the collector alive and in place while the VM has pointers to it.
    pub(super) fn anchor(&self, holder: VALUE) -> Result<(), Error> {
        debug_assert_eq!(self.phase.get(), Phase::Idle);
        self.holder.set(holder);
        // SAFETY: the cell is in a box of its own until the GC frees the collector, which it does not do while the cell
        // is registered.
        protect(|| unsafe { rb_sys::rb_gc_register_address(self.holder.as_ptr()) })?;
        list().push((holder, std::ptr::from_ref(self) as usize));
        Ok(())
    }

    /// The inverse of [`anchor`](Self::anchor).
    pub(super) fn release_anchor(&self) {
        // SAFETY: registered by `anchor`.
        unsafe { rb_sys::rb_gc_unregister_address(self.holder.as_ptr()) };
        let holder = self.holder.replace(rb_sys::Qnil as VALUE);
        list().retain(|&(other, _)| other != holder);
    }
}
