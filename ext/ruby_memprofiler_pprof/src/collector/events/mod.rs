//! The functions that the VM calls: the hot path. An unsampled allocation costs a decrement.

mod subscriptions;

use super::{Collector, windows};
use crate::faults::{self, InHook};
use crate::vm::errno::SavedErrno;
use crate::vm::hooks::{END_MARK, FREEOBJ, NEWOBJ, TraceArg};
use crate::vm::ractor::{self, MainRactor};
use crate::vm::{clock, machine_stack};
use rb_sys::VALUE;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

/// Called at each event that a collector subscribes to. One function for all of them, because the VM goes through all
/// hooks at each event.
///
/// # Safety
/// Must only be called by the VM, as a raw hook with a collector's hook data.
unsafe extern "C" fn on_event(data: VALUE, arg: *const TraceArg) {
    // SAFETY: a collector is kept alive for as long as it has hooks; the VM passes a valid argument.
    let (collector, arg) = unsafe { (Collector::from_hook_data(data), &*arg) };
    match arg.event {
        // SAFETY: the event is NEWOBJ, and `arg` is the hook's argument.
        NEWOBJ => unsafe { allocated(collector, arg) },
        FREEOBJ => {
            // SAFETY: in a hook, and not inside another body of `state`: those allocate nothing through the VM, so no
            // object is freed in them.
            if unsafe { collector.state.look(|state| state.reservoir.live().may_have(arg.object)) } {
                // SAFETY: the VM calls this for an object that is intact.
                unsafe { freed(collector, arg.object) };
            }
        }
        // SAFETY: the event is GC_END_MARK.
        END_MARK => unsafe { end_mark(collector) },
        // Not after a sweep in which a Ractor object died (Bug #19112).
        _ => {
            let _trap = InHook::enter("GC_END_SWEEP");
            // Up to Ruby 3.4 another Ractor may have swept parts of it, and FREEOBJ did not report those here.
            if cfg!(ruby_gte_4_0) || !ractor::others() || collector.uses_mark_bits() {
                collector.missed_collections.saw_sweep();
            }
        }
    }
}

/// Like [`on_event`], for the hook that windows switch on and off. An allocation counts only in a window, and the stack
/// is checked before that, too. FREEOBJ is not wanted, see [`SWITCHED`].
///
/// # Safety
/// As for [`on_event`].
unsafe extern "C" fn on_switched_event(data: VALUE, arg: *const TraceArg) {
    // SAFETY: as in `on_event`.
    let (collector, arg) = unsafe { (Collector::from_hook_data(data), &*arg) };
    if arg.event != NEWOBJ {
        return;
    }
    // SAFETY: the VM has passed `arg` to this hook.
    if unsafe { machine_stack::runs_out_in_hook(arg) } {
        return collector.suspend_window();
    }
    let look = windows::must_look_at(arg.object);
    let seen = if look { collector.follow_window() } else { windows::is_inside() };
    if seen {
        // SAFETY: the event is NEWOBJ, and `arg` is the hook's argument. The stack does not run out.
        unsafe { count_or_sample(collector, arg) };
    } else {
        collector.windows.pass();
    }
}

/// Counts an allocation, and takes a sample if one is due, unless the stack runs out. There the VM may jump out of
/// anything at any point; the next allocation will do as well.
///
/// # Safety
/// Must be called in a NEWOBJ hook with its argument.
#[inline]
unsafe fn allocated(collector: &Collector, arg: &TraceArg) {
    // SAFETY: as required above.
    unsafe {
        if machine_stack::runs_out_in_hook(arg) {
            stack_runs_out(collector);
        } else {
            count_or_sample(collector, arg);
        }
    }
}

/// # Safety
/// Must be called in a NEWOBJ hook.
#[cold]
#[inline(never)]
unsafe fn stack_runs_out(collector: &Collector) {
    // From Ruby 4.0 on, removing the hook waits for other Ractors, one of which may be waiting for this one.
    if ractor::is_main() && !(cfg!(ruby_gte_4_0) && ractor::others()) {
        // SAFETY: on the main Ractor, and from Ruby 4.0 on there is no other. Only removes hooks.
        collector.suspend_hook(unsafe { MainRactor::new() });
    }
}

/// # Safety
/// Must be called in a NEWOBJ hook with its argument, and not near the end of the stack.
#[inline]
unsafe fn count_or_sample(collector: &Collector, arg: &TraceArg) {
    match collector.countdown.left() {
        // SAFETY: as required above.
        0 => unsafe { take_sample(collector, arg) },
        left => collector.countdown.pass(left),
    }
}

/// # Safety
/// As for [`count_or_sample`].
#[inline(never)]
unsafe fn take_sample(collector: &Collector, arg: &TraceArg) {
    if collector.countdown.is_stopped() {
        // A hook of another Ractor has overwritten it.
        return collector.countdown.stop();
    }
    let _errno = SavedErrno::new();
    let _trap = InHook::enter("NEWOBJ");
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        collector.state.try_with(|state| {
            faults::point("NEWOBJ");
            let began = state.reservoir.is_window_open().then(clock::monotonic);
            let candidate = state.reservoir.select();
            // SAFETY: in the NEWOBJ hook; the holder is registered as a root while there are hooks.
            unsafe { state.allocated(candidate, arg, collector.holder.get()) };
            if let Some(began) = began {
                let ended = clock::monotonic();
                state.reservoir.add_sampling_time(began, ended);
                windows::note_time(ended);
            }
        })
    }));
    match outcome {
        Ok(Some(())) => {}
        Ok(None) => {
            // Another Ractor has the state, or who writes a profile without the GVL. The next allocation will do as
            // well: the sampler has no memory.
            collector.contended.fetch_add(1, Ordering::Relaxed);
        }
        Err(_) => collector.panicked("NEWOBJ"),
    }
}

/// # Safety
/// Must be called in a GC_END_MARK hook.
#[inline(never)]
unsafe fn end_mark(collector: &Collector) {
    if faults::denied("GC_END_MARK") {
        return;
    }
    let _trap = InHook::enter("GC_END_MARK");
    let missed = collector.missed_collections.saw_mark_phase();
    if collector.failure().is_some() {
        return;
    }
    let _errno = SavedErrno::new();
    windows::ensure_running();
    collector.reconsider_sampling();
    let work = AssertUnwindSafe(|| {
        collector.state.with(|state| {
            faults::point("GC_END_MARK");
            // Of objects that died unnoticed even the pages may be gone: their mark bits must not be read.
            state.distrust_after(missed);
            // SAFETY: in the GC_END_MARK hook. No collection was missed since the samples in the live set were taken.
            unsafe { state.collected(collector.missed_collections.is_major()) };
            // SAFETY: in the same hook, after that.
            unsafe { state.look_for_peak() };
        });
    });
    if catch_unwind(work).is_err() {
        collector.panicked("GC_END_MARK");
    }
}

/// # Safety
/// Must be called in a FREEOBJ hook for `object`.
#[inline(never)]
unsafe fn freed(collector: &Collector, object: VALUE) {
    if collector.failure().is_some() {
        return;
    }
    let _trap = InHook::enter("FREEOBJ");
    let work = AssertUnwindSafe(|| {
        collector.state.with(|state| {
            faults::point("FREEOBJ");
            // SAFETY: in a FREEOBJ hook for `object`, which the VM frees only after the hook returns.
            unsafe { state.freed(object) };
        });
    });
    if catch_unwind(work).is_err() {
        collector.panicked("FREEOBJ");
    }
}
