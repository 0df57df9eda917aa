//! Where the machine stack ends.
//!
//! A C function that does nothing on its way down but allocate, such as Marshal.load of deep data, has the allocation's
//! hook as what goes deepest. A Ruby does not survive unharmed that its stack ends there. Before 4.0 the exception skips
//! the release of the VM's lock, which it then tries without end; on 4.0 the GC stays disabled, and the thread has no
//! events any more. So the hook goes first, and comes back when the exception is through. Beside other Ractors it cannot
//! from 4.0 on, and takes no sample there.

use super::hooked;
use super::{Collector, Phase};
use crate::vm::{ractor, safepoint};
use magnus::Error;
use std::ffi::c_void;
use std::sync::atomic::Ordering;

impl Collector {
    /// Takes the hook off until the next safe point. Collections meanwhile are missed, which is noticed like any other.
    ///
    /// # Safety
    /// In a NEWOBJ hook of this collector on the main Ractor; from Ruby 4.0 on only if there are no others.
    #[cold]
    pub(super) unsafe fn step_aside(&self) {
        self.stack_ends.fetch_add(1, Ordering::Relaxed);
        self.aside.store(true, Ordering::Relaxed);
        if !self.uses_mark_bits() {
            self.missed_collections.miss_sweep();
        }
        // SAFETY: on the main Ractor, and from Ruby 4.0 on there is no other. The VM frees a hook that is removed while
        // it runs when it has run.
        unsafe { self.unhook(Phase::Running) };
        safepoint::request(come_back);
    }

    /// Puts the hook on again after [`step_aside`](Self::step_aside), if that was not done yet.
    ///
    /// # Safety
    /// At a safe point of the main Ractor.
    pub(super) unsafe fn come_back(&self) -> Result<(), Error> {
        if self.aside.load(Ordering::Relaxed) && self.phase() == Phase::Running {
            // SAFETY: at a safe point of the main Ractor, which no hook is; a running collector is anchored.
            unsafe { self.hook(Phase::Running) }?;
        }
        Ok(())
    }
}

unsafe extern "C" fn come_back(_: *mut c_void) {
    // Elsewhere the hook would go onto another list up to Ruby 3.4. The next flush puts it on.
    if ractor::is_main() {
        hooked::each(|collector| {
            // Without memory the next flush puts it on; nothing can be raised here.
            // SAFETY: a safe point of the main Ractor.
            let _ = unsafe { collector.come_back() };
        });
    }
}
