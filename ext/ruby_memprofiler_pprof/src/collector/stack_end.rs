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
    /// noticed like any other missed one. Where jobs open windows only the window ends.
    #[cold]
    pub(super) fn suspend_hook(&self, main: MainRactor) {
        self.stack_ends.fetch_add(1, Ordering::Relaxed);
        if self.windows.are_used() {
            // If a hook is removed while it runs, the VM frees it afterwards. The timer asks for another window.
            return self.close_window(main);
        }
        self.suspended.store(true, Ordering::Relaxed);
        if !self.uses_mark_bits() {
            self.missed_collections.miss_sweep();
        }
        self.unhook(main, Phase::Running);
        safepoint::request(resume_job);
    }

    /// Switches the hook off that windows switch on, until the next window.
    #[cold]
    pub(super) fn suspend_window(&self) {
        self.stack_ends.fetch_add(1, Ordering::Relaxed);
        self.cut_window_short();
    }

    /// Whether the hook is removed for now. Safe on any thread.
    pub(super) fn is_suspended(&self) -> bool {
        self.suspended.load(Ordering::Relaxed)
    }

    /// Requests that the hook is added again if it still is not: no safe point since may have had enough of the stack
    /// left. For the mark function, since no hook is called. Safe on any thread.
    pub(super) fn ask_to_resume(&self) {
        if self.suspended.load(Ordering::Relaxed) {
            safepoint::request(resume_job);
        }
    }

    /// Adds the hook again after [`suspend_hook`](Self::suspend_hook), unless that was already done.
    pub(super) fn resume_hook(&self, main: MainRactor) -> Result<(), Error> {
        if self.suspended.load(Ordering::Relaxed) && self.phase() == Phase::Running {
            self.hook(main, Phase::Running)?;
        }
        Ok(())
    }
}

/// The job.
///
/// # Safety
/// Must run at a safe point of a Ruby thread.
unsafe extern "C" fn resume_job(_: *mut c_void) {
    // Elsewhere, up to Ruby 3.4, the hook would be added to another list. The next collection of garbage asks again,
    // and the next flush adds it.
    // SAFETY: at a safe point, as required above.
    let Some(main) = (unsafe { MainRactor::in_job() }) else { return };
    hooked::each(|collector| {
        // If there is no memory, the next flush adds it; nothing can be raised here.
        collector.guarded("return from the stack's end", || drop(collector.resume_hook(main)));
    });
}
