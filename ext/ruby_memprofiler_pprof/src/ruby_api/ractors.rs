//! What other Ractors allow.

use super::errors;
use crate::collector::sampling;
use crate::cpu::discovery;
use crate::vm::ractor::MainRactor;
use crate::vm::{activity, protect, quirks::Quirks, ractor, thread_events};
use magnus::rb_sys::FromRawValue;
use magnus::{Error, Ruby, Value, prelude::*};
use std::ffi::c_int;

/// Whether this is the main Ractor.
pub fn on_main_ractor(ruby: &Ruby) -> Result<bool, Error> {
    let Ok(ractor) = ruby.class_object().const_get::<_, Value>("Ractor") else { return Ok(true) };
    let (current, main): (Value, Value) = (ractor.funcall("current", ())?, ractor.funcall("main", ())?);
    current.equal(main)
}

/// Fails if Ractors prevent starting something, which `traces` allocations or does not; otherwise watches for them, and
/// for threads, from now on.
pub fn check_ractors(ruby: &Ruby, traces: bool) -> Result<MainRactor, Error> {
    if !on_main_ractor(ruby)? {
        return Err(errors::ractor(ruby, "a collector can only be started on the main Ractor"));
    }
    // SAFETY: on the main Ractor, as just checked, and in a method.
    let main = unsafe { MainRactor::new() };
    main.mark()?;
    thread_events::watch();
    activity::prepare();
    discovery::prepare();
    if ractor::count(ruby)? == 1 {
        return Ok(main);
    }
    // Those that already exist.
    ractor::note_others();
    if traces && Quirks::current(ruby)?.forbid_ractors() {
        let message = "this Ruby may crash when allocations are traced beside another Ractor, and one is running: \
                       start the profiler when it has ended, or use Ruby 3.1.4, 3.2.3, 3.3 or 4.0";
        return Err(errors::ractor(ruby, message));
    }
    Ok(main)
}

/// `Ractor.new` from Ruby 4.0 on. In windows, collectors would notice another Ractor by a job, which runs on the main
/// one; and that may wait until the other has ended. Not in Ruby, since `Ractor#inspect` shows the line of the caller.
pub fn new_ractor(_class: Value, arguments: &[Value]) -> Result<Value, Error> {
    if ractor::is_main() {
        // SAFETY: on the main Ractor, and in a method.
        sampling::before_ractor(unsafe { MainRactor::new() });
    }
    let length = c_int::try_from(arguments.len()).unwrap_or(c_int::MAX);
    // SAFETY: in a method, whose arguments these are; keywords and the block are passed on as they came.
    protect(|| unsafe {
        let keywords = rb_sys::rb_keyword_given_p();
        Value::from_raw(rb_sys::rb_call_super_kw(length, arguments.as_ptr().cast(), keywords))
    })
}
