//! The functions that the VM calls. They are the hot path: an unsampled allocation costs a decrement.

use super::Collector;
use crate::vm::errno::SavedErrno;
use crate::vm::hooks::TraceArg;
use rb_sys::VALUE;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Collector {
    /// What the hooks of this collector are registered with. A pointer with its lowest bit set looks like a small
    /// integer to the VM, which would mark a plain one.
    pub(super) fn hook_data(&self) -> VALUE {
        std::ptr::from_ref(self) as VALUE | 1
    }

    /// The collector behind what [`hook_data`](Self::hook_data) returned.
    ///
    /// # Safety
    /// The collector must be alive.
    #[inline]
    unsafe fn from_hook_data<'a>(data: VALUE) -> &'a Self {
        // SAFETY: undoes hook_data.
        unsafe { &*((data - 1) as *const Self) }
    }
}

/// At each allocation.
///
/// # Safety
/// To be called by the VM alone, as a raw NEWOBJ hook with a collector's hook data.
pub(super) unsafe extern "C" fn on_newobj(data: VALUE, arg: *const TraceArg) {
    // SAFETY: a collector is kept alive for as long as it has hooks.
    let collector = unsafe { Collector::from_hook_data(data) };
    let countdown = collector.countdown.get() - 1;
    collector.countdown.set(countdown);
    if countdown == 0 {
        // SAFETY: the VM passes a valid argument.
        unsafe { take_sample(collector, &*arg) };
    }
}

/// # Safety
/// In a NEWOBJ hook with this argument.
#[inline(never)]
unsafe fn take_sample(collector: &Collector, arg: &TraceArg) {
    let _errno = SavedErrno::new();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        collector.state.try_with(|state| {
            collector.countdown.set(state.sampler.next_gap());
            // SAFETY: in the hook; the holder is registered as a root while there are hooks.
            unsafe { state.allocated(arg, collector.holder.get()) };
        })
    }));
    match outcome {
        Ok(Some(())) => {}
        Ok(None) => {
            // Another Ractor has the state. The next allocation will do as well: the sampler has no memory.
            collector.countdown.set(1);
            collector.contended.set(collector.contended.get() + 1);
        }
        Err(_) => collector.panicked("NEWOBJ"),
    }
}

/// At the end of each mark phase.
///
/// # Safety
/// To be called by the VM alone, as a raw GC_END_MARK hook with a collector's hook data.
pub(super) unsafe extern "C" fn on_end_mark(data: VALUE, _arg: *const TraceArg) {
    // SAFETY: a collector is kept alive for as long as it has hooks.
    let collector = unsafe { Collector::from_hook_data(data) };
    collector.collections.saw_one();
    // SAFETY: in the hook.
    let work =
        AssertUnwindSafe(|| collector.state.with(|state| unsafe { state.collected(collector.collections.is_major()) }));
    if catch_unwind(work).is_err() {
        collector.panicked("GC_END_MARK");
    }
}

/// At the end of each sweep. If a Ractor object died in it (Bug #19112), this is not called.
///
/// # Safety
/// To be called by the VM alone, as a raw GC_END_SWEEP hook with a collector's hook data.
pub(super) unsafe extern "C" fn on_end_sweep(data: VALUE, _arg: *const TraceArg) {
    // SAFETY: a collector is kept alive for as long as it has hooks.
    unsafe { Collector::from_hook_data(data) }.collections.saw_sweep();
}

/// At each death.
///
/// # Safety
/// To be called by the VM alone, as a raw FREEOBJ hook with a collector's hook data.
pub(super) unsafe extern "C" fn on_freeobj(data: VALUE, arg: *const TraceArg) {
    // SAFETY: a collector is kept alive for as long as it has hooks; the VM passes a valid argument.
    let (collector, object) = unsafe { (Collector::from_hook_data(data), (*arg).object) };
    // SAFETY: in a hook; bodies do not free objects.
    if unsafe { collector.state.look(|state| state.live.may_have(object)) } {
        // SAFETY: the VM calls this for an object that is intact.
        unsafe { bury(collector, object) };
    }
}

/// # Safety
/// In a FREEOBJ hook for `object`.
#[inline(never)]
unsafe fn bury(collector: &Collector, object: VALUE) {
    // SAFETY: the caller's promise.
    let work = AssertUnwindSafe(|| collector.state.with(|state| unsafe { state.freed(object) }));
    if catch_unwind(work).is_err() {
        collector.panicked("FREEOBJ");
    }
}
