//! The function that the VM calls. It is the hot path: an unsampled allocation costs a decrement.

use super::{Collector, Phase};
use crate::faults::{self, InHook};
use crate::vm::errno::SavedErrno;
use crate::vm::hooks::{self, END_MARK, END_SWEEP, FREEOBJ, NEWOBJ, TraceArg};
use crate::vm::{ractor, threads};
use rb_sys::VALUE;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

/// Has the lowest bit set: a small integer to the VM, which would mark a plain pointer.
const SAMPLING: VALUE = 1;
/// As `SAMPLING`; another one, so that a hook can be added before the one that it replaces is removed.
const FOLLOWING: VALUE = 3;
/// Of how many allocations one looks whether the stack ends soon, that is within 16 KB: a recursion needs less for eight.
const STACK_CHECKS: u64 = 8;
/// The bits of a collector's address that are 0.
const TAG: VALUE = 7;

impl Collector {
    /// Puts the hook on that a phase has, if it has one.
    ///
    /// # Safety
    /// On the main Ractor; the collector must be anchored.
    pub(super) unsafe fn hook(&self, phase: Phase) {
        self.aside.store(false, Ordering::Relaxed);
        let allocations = match phase {
            Phase::Idle | Phase::Detached => return,
            Phase::Running => NEWOBJ,
            Phase::Stopped => 0,
        };
        let deaths = if self.uses_mark_bits() { 0 } else { FREEOBJ };
        // SAFETY: the caller's promise; an anchored collector stays alive and in place.
        unsafe { hooks::add(on_event, allocations | deaths | END_MARK | END_SWEEP, self.hook_data(phase)) };
    }

    /// Takes the hook for a phase off, if it is on.
    ///
    /// # Safety
    /// On the main Ractor; in a hook, from Ruby 4.0 on, only if there are no others.
    pub(super) unsafe fn unhook(&self, phase: Phase) {
        // SAFETY: the caller's promise.
        unsafe { hooks::remove(on_event, self.hook_data(phase)) };
    }

    fn hook_data(&self, phase: Phase) -> VALUE {
        std::ptr::from_ref(self) as VALUE | if phase == Phase::Running { SAMPLING } else { FOLLOWING }
    }

    /// The collector behind what [`hook_data`](Self::hook_data) returned.
    ///
    /// # Safety
    /// The collector must be alive.
    #[inline]
    unsafe fn from_hook_data<'a>(data: VALUE) -> &'a Self {
        // SAFETY: undoes hook_data.
        unsafe { &*((data & !TAG) as *const Self) }
    }
}

const _: () = assert!(align_of::<Collector>() > TAG as usize);

/// At each event that a collector wants to know of. One function for all, because for each event the VM goes through
/// all hooks that there are.
///
/// # Safety
/// To be called by the VM alone, as a raw hook with a collector's hook data.
unsafe extern "C" fn on_event(data: VALUE, arg: *const TraceArg) {
    // SAFETY: a collector is kept alive for as long as it has hooks; the VM passes a valid argument.
    let (collector, arg) = unsafe { (Collector::from_hook_data(data), &*arg) };
    match arg.event {
        NEWOBJ => {
            let countdown = collector.countdown.load(Ordering::Relaxed);
            if countdown > 1 && countdown % STACK_CHECKS != 0 {
                collector.countdown.store(countdown - 1, Ordering::Relaxed);
            } else {
                // SAFETY: in the hook.
                unsafe { look_closer(collector, arg, countdown) };
            }
        }
        FREEOBJ => {
            // SAFETY: in a hook, which no body reaches: none takes memory from the VM.
            if unsafe { collector.state.look(|state| state.live.may_have(arg.object)) } {
                // SAFETY: the VM calls this for an object that is intact.
                unsafe { bury(collector, arg.object) };
            }
        }
        // SAFETY: in the hook.
        END_MARK => unsafe { end_mark(collector) },
        // Not after a sweep in which a Ractor object died (Bug #19112).
        _ => {
            let _trap = InHook::enter("GC_END_SWEEP");
            // Up to Ruby 3.4 another Ractor may have swept parts of it, which FREEOBJ did not tell of here.
            if cfg!(ruby_gte_4_0) || !ractor::others() || collector.uses_mark_bits() {
                collector.collections.saw_sweep();
            }
        }
    }
}

/// Looks at the stack, and takes a sample if it is time. Not near the end of the stack, where the next allocation will
/// do as well: the VM may jump out of what runs there at any point.
///
/// # Safety
/// In a NEWOBJ hook with this argument.
#[inline(never)]
unsafe fn look_closer(collector: &Collector, arg: &TraceArg, countdown: u64) {
    // Where the hook stays on, as beside other Ractors, no sample may be taken unlooked.
    let look = countdown > 1 || cfg!(ruby_gte_4_0) || {
        let samples = collector.samples.load(Ordering::Relaxed);
        collector.samples.store(samples.wrapping_add(1), Ordering::Relaxed);
        samples % STACK_CHECKS == 0
    };
    if look && threads::stack_runs_out() {
        // From Ruby 4.0 on, taking the hook off waits for other Ractors, one of which may be waiting for this one.
        if ractor::is_main() && !(cfg!(ruby_gte_4_0) && ractor::others()) {
            // SAFETY: in a hook on the main Ractor.
            unsafe { collector.step_aside() };
        }
    } else if countdown > 1 {
        collector.countdown.store(countdown - 1, Ordering::Relaxed);
    } else {
        // SAFETY: the caller's promise.
        unsafe { take_sample(collector, arg) };
    }
}

/// # Safety
/// In a NEWOBJ hook with this argument.
#[inline]
unsafe fn take_sample(collector: &Collector, arg: &TraceArg) {
    let _errno = SavedErrno::new();
    let _trap = InHook::enter("NEWOBJ");
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        collector.state.try_with(|state| {
            faults::point("NEWOBJ");
            collector.countdown.store(state.sampler.next_gap(), Ordering::Relaxed);
            // SAFETY: in the hook; the holder is registered as a root while there are hooks.
            unsafe { state.allocated(arg, collector.holder.get()) };
        })
    }));
    match outcome {
        Ok(Some(())) => {}
        Ok(None) => {
            // Another Ractor has the state. The next allocation will do as well: the sampler has no memory.
            collector.contended.fetch_add(1, Ordering::Relaxed);
        }
        Err(_) => collector.panicked("NEWOBJ"),
    }
}

/// # Safety
/// In a GC_END_MARK hook.
#[inline(never)]
unsafe fn end_mark(collector: &Collector) {
    if faults::denied("GC_END_MARK") {
        return;
    }
    let _trap = InHook::enter("GC_END_MARK");
    let missed = collector.collections.saw_one();
    if collector.failure().is_some() {
        return;
    }
    let work = AssertUnwindSafe(|| {
        collector.state.with(|state| {
            faults::point("GC_END_MARK");
            // Of those that died unnoticed even the pages may be gone: they must not be asked about.
            state.distrust_after(missed);
            // SAFETY: in the hook, and no collection was missed since what is in the live set came.
            unsafe { state.collected(collector.collections.is_major()) };
        });
    });
    if catch_unwind(work).is_err() {
        collector.panicked("GC_END_MARK");
    }
}

/// # Safety
/// In a FREEOBJ hook for `object`.
#[inline(never)]
unsafe fn bury(collector: &Collector, object: VALUE) {
    if collector.failure().is_some() {
        return;
    }
    let _trap = InHook::enter("FREEOBJ");
    let work = AssertUnwindSafe(|| {
        collector.state.with(|state| {
            faults::point("FREEOBJ");
            // SAFETY: the caller's promise.
            unsafe { state.freed(object) };
        });
    });
    if catch_unwind(work).is_err() {
        collector.panicked("FREEOBJ");
    }
}
