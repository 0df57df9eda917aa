//! Where the machine stack ends.
//!
//! In a recursive C function that only allocates, such as Marshal.load of deep data, the allocation's hook goes
//! deepest. No Ruby survives unharmed if its stack ends there: before 4.0 the exception skips the release of the VM's
//! lock, which the VM then tries to take forever; on 4.0 the GC stays disabled, and the thread gets no events any more.
//! So the hook is removed first, and added again once the exception is through. Beside other Ractors that is impossible
//! from 4.0 on; there it takes no sample.

use super::hooked;
use super::{Collector, Phase};
use crate::vm::{ractor, safepoint};
use magnus::Error;
use std::ffi::c_void;
use std::sync::atomic::Ordering;

impl Collector {
    /// Removes the hook until the next safe point that is farther from the end. Collections in between are missed, and
    /// noticed like any other missed one. With windows only the window ends.
    ///
    /// # Safety
    /// Must be called in a NEWOBJ hook of this collector on the main Ractor; from Ruby 4.0 on only if there are no
    /// others.
    #[cold]
    pub(super) unsafe fn step_aside(&self) {
        self.stack_ends.fetch_add(1, Ordering::Relaxed);
        if self.windows.are_used() {
            // SAFETY: on the main Ractor, and from Ruby 4.0 on there is no other. If a hook is removed while it runs,
            // the VM frees it afterwards. The timer asks for another window.
            return unsafe { self.close_window() };
        }
        self.aside.store(true, Ordering::Relaxed);
        if !self.uses_mark_bits() {
            self.missed_collections.miss_sweep();
        }
        // SAFETY: as above.
        unsafe { self.unhook(Phase::Running) };
        safepoint::request(come_back);
    }

    /// Whether the hook is removed for now. Safe on any thread.
    pub(super) fn has_stepped_aside(&self) -> bool {
        self.aside.load(Ordering::Relaxed)
    }

    /// Requests that the hook is added again if it still is not: no safe point since may have had enough of the stack
    /// left. For the mark function, since no hook is called. Safe on any thread.
    pub(super) fn ask_to_come_back(&self) {
        if self.aside.load(Ordering::Relaxed) {
            safepoint::request(come_back);
        }
    }

    /// Adds the hook again after [`step_aside`](Self::step_aside), unless that was already done.
    ///
    /// # Safety
    /// Must run at a safe point of the main Ractor.
    pub(super) unsafe fn come_back(&self) -> Result<(), Error> {
        if self.aside.load(Ordering::Relaxed) && self.phase() == Phase::Running {
            // SAFETY: at a safe point of the main Ractor, so not in a hook; a running collector is anchored.
            unsafe { self.hook(Phase::Running) }?;
        }
        Ok(())
    }
}

unsafe extern "C" fn come_back(_: *mut c_void) {
    // Elsewhere, up to Ruby 3.4, the hook would be added to another list. The next collection of garbage asks again,
    // and the next flush adds it.
    if ractor::is_main() && safepoint::has_room() {
        hooked::each(|collector| {
            // If there is no memory, the next flush adds it; nothing can be raised here.
            // SAFETY: a safe point of the main Ractor.
            collector.guarded("return from the stack's end", || drop(unsafe { collector.come_back() }));
        });
    }
}
