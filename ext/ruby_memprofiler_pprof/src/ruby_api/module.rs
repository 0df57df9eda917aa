//! Functions of the module `MemprofilerPprof`.

use super::ractors::{new_ractor, on_main_ractor};
use crate::collector::{exiting, hooked, mute, sampling};
use crate::vm::quirks::Quirks;
use crate::vm::{activity, thread_events, threads};
use magnus::rb_sys::FromRawValue;
use magnus::{Error, Module, Object, RArray, RModule, Ruby, Value, function, method};
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr;

/// Bytes of stack between the caller of `yield_deep` and the block: more than the GC and its callers need.
const GAP: usize = 32 * 1024;

/// Defines the functions.
pub fn init(module: RModule) -> Result<(), Error> {
    module.define_module_function("collectors", function!(collectors, 0))?;
    module.define_module_function("forget_threads", function!(forget_threads, 0))?;
    module.define_module_function("yield_deep", function!(yield_deep, 0))?;
    module.define_module_function("signal_handler", function!(signal_handler, 1))?;
    module.define_module("RunningFlushers")?.define_singleton_method("exiting=", function!(exiting::set, 1))?;
    let service = module.define_module("Service")?;
    service.define_singleton_method("announce", function!(sampling::announce_service, 0))?;
    service.define_singleton_method("announced?", function!(sampling::is_service, 0))?;
    let guard = module.define_module("RactorGuard")?;
    guard.define_singleton_method("needed?", function!(ractor_guard_needed, 0))?;
    guard.define_module("Windows")?.define_method("new", method!(new_ractor, -1))
}

/// All collectors that are running, or that were stopped and not flushed since. They belong to the main Ractor; in
/// others the list is empty.
fn collectors(ruby: &Ruby) -> Result<RArray, Error> {
    let list = ruby.ary_new();
    if !on_main_ractor(ruby)? {
        return Ok(list);
    }
    for collector in hooked() {
        // SAFETY: collectors with hooks are roots of the GC.
        list.push(unsafe { Value::from_raw(collector) })?;
    }
    Ok(list)
}

/// For a forked child: forgets what was recorded about the threads that are gone.
fn forget_threads() {
    thread_events::forget();
    activity::forget();
    mute::forget_others(threads::current_context());
}

/// The address of the C function that handles a signal; 0 for the default action, 1 if the signal is ignored. Asking
/// changes nothing, unlike `Signal.trap`.
fn signal_handler(ruby: &Ruby, number: i32) -> Result<usize, Error> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action this only writes the present one, for which there is room.
    if unsafe { libc::sigaction(number, ptr::null(), action.as_mut_ptr()) } != 0 {
        let message = format!("number must be a signal's, got {number}");
        return Err(Error::new(ruby.exception_arg_error(), message));
    }
    // SAFETY: it was zeroed, which is a valid `sigaction`, and then written.
    Ok(unsafe { action.assume_init() }.sa_sigaction)
}

/// Whether creating a Ractor while allocations are traced crashes this Ruby.
fn ractor_guard_needed(ruby: &Ruby) -> Result<bool, Error> {
    Ok(Quirks::current(ruby)?.forbid_ractors())
}

/// Calls the block far down the machine stack and ignores its value. The GC treats whatever looks like a reference on
/// the stack as one, including the remains of returned frames. This leaves the block's remains below everything that is
/// in use when its caller next collects garbage.
fn yield_deep(ruby: &Ruby) -> Result<(), Error> {
    let gap = [0_u8; GAP];
    black_box(&gap);
    let outcome = yield_and_forget(ruby);
    // Keeps the gap in place up to here.
    black_box(&gap);
    outcome
}

/// A separate frame, so that the value is below the gap, too.
#[inline(never)]
fn yield_and_forget(ruby: &Ruby) -> Result<(), Error> {
    ruby.yield_values::<_, Value>(()).map(drop)
}
