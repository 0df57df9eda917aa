//! Where the machine stack ends.
//!
//! In a recursive C function that only allocates, such as Marshal.load of deep data, the allocation's hook goes
//! deepest. No Ruby survives unharmed if its stack ends there: before 4.0 the exception skips the release of the VM's
//! lock, which the VM then tries to take forever; on 4.0 the GC stays disabled, and the thread gets no events any more.
//! So the hook is removed first, and added again once the exception is through. Beside other Ractors that is impossible
//! from 4.0 on; there it takes no sample.

use super::hooked;
use super::{Collector, Phase};
use crate::vm::ractor::MainRactor;
use crate::vm::safepoint;
use magnus::Error;
use std::ffi::c_void;
use std::sync::atomic::Ordering;

impl Collector {
    /// Removes the hook until the next safe point that is farther from the end. Collections in between are missed, and
    /// noticed like any other missed one. With windows only the window ends.
    #[cold]
    pub(super) fn step_aside(&self, main: MainRactor) {
        self.stack_ends.fetch_add(1, Ordering::Relaxed);
        if self.windows.are_used() {
            // If a hook is removed while it runs, the VM frees it afterwards. The timer asks for another window.
            return self.close_window(main);
        }
        self.aside.store(true, Ordering::Relaxed);
        if !self.uses_mark_bits() {
            self.missed_collections.miss_sweep();
        }
        self.unhook(main, Phase::Running);
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
    pub(super) fn come_back(&self, main: MainRactor) -> Result<(), Error> {
        if self.aside.load(Ordering::Relaxed) && self.phase() == Phase::Running {
            self.hook(main, Phase::Running)?;
        }
        Ok(())
    }
}

/// The job.
///
/// # Safety
/// Must run at a safe point of a Ruby thread.
unsafe extern "C" fn come_back(_: *mut c_void) {
    // Elsewhere, up to Ruby 3.4, the hook would be added to another list. The next collection of garbage asks again,
    // and the next flush adds it.
    // SAFETY: at a safe point, as required above.
    let Some(main) = (unsafe { MainRactor::in_job() }) else { return };
    hooked::each(|collector| {
        // If there is no memory, the next flush adds it; nothing can be raised here.
        collector.guarded("return from the stack's end", || drop(collector.come_back(main)));
    });
}
