//! The VM's object events, as raw hooks, which cost less than TracePoints.
//!
//! From Ruby 4.0 on all Ractors share one list of hooks. The VM changes the list and frees its hooks without a lock, so
//! this happens while the others stand still, and none is in a hook.

use super::protect;
use super::ractor::MainRactor;
use crate::faults;
use magnus::Error;
use rb_sys::{VALUE, rb_event_flag_t};

unsafe extern "C" {
    // include/ruby/debug.h. Declared here because bindgen turns the flags into a Rust enum, which cannot combine two of
    // them, and because the signature of a raw hook differs from the public one.
    fn rb_add_event_hook2(hook: RawHook, events: rb_event_flag_t, data: VALUE, flags: u32);
    fn rb_remove_event_hook_with_data(hook: RawHook, data: VALUE) -> i32;
}

/// `RUBY_EVENT_HOOK_FLAG_SAFE | RUBY_EVENT_HOOK_FLAG_RAW_ARG`.
const SAFE_RAW_ARG: u32 = 0x01 | 0x04;

/// An allocation: flags and class of the object are set, its contents are not.
pub const NEWOBJ: rb_event_flag_t = rb_sys::RUBY_INTERNAL_EVENT_NEWOBJ;
/// The death of an object. The object is intact, but what it refers to may be gone.
pub const FREEOBJ: rb_event_flag_t = rb_sys::RUBY_INTERNAL_EVENT_FREEOBJ;

/// The end of a mark phase: what is not marked is dead, and none of it is swept yet.
pub const END_MARK: rb_event_flag_t = rb_sys::RUBY_INTERNAL_EVENT_GC_END_MARK;

/// The end of a sweep: all dead objects have passed FREEOBJ.
pub const END_SWEEP: rb_event_flag_t = rb_sys::RUBY_INTERNAL_EVENT_GC_END_SWEEP;

/// A thread begins to run; called in that thread.
pub const THREAD_BEGIN: rb_event_flag_t = rb_sys::RUBY_EVENT_THREAD_BEGIN;

/// A thread has run, and, before Ruby 3.2.5 and 3.3.2, did not end by an exception; called in that thread.
pub const THREAD_END: rb_event_flag_t = rb_sys::RUBY_EVENT_THREAD_END;

/// `struct rb_trace_arg_struct` of vm_core.h, the same in every Ruby from 3.1 to 4.0.
#[repr(C)]
pub struct TraceArg {
    /// One of the events above.
    pub event: rb_event_flag_t,
    /// The execution context in which the event happened.
    pub context: *const u8,
    control_frame: *const u8,
    receiver: VALUE,
    id: VALUE,
    called_id: VALUE,
    class: VALUE,
    /// The object allocated or freed; 0 for other events.
    pub object: VALUE,
}

/// The signature of a raw hook, which gets the data it was registered with, and the event. It must not raise, allocate
/// on Ruby's heap, call Ruby code, or check interrupts.
pub type RawHook = unsafe extern "C" fn(data: VALUE, arg: *const TraceArg);

/// Calls `hook` with `data` at each of `events`, until [`remove`]d. The VM marks `data` as an object, so pass what
/// looks like a small integer.
///
/// # Safety
/// What `data` points to must outlive the registration.
pub unsafe fn add(main: MainRactor, hook: RawHook, events: rb_event_flag_t, data: VALUE) -> Result<(), Error> {
    protect(|| {
        faults::point("hook");
        // SAFETY: on the main Ractor. With RAW_ARG the VM calls the function as a RawHook.
        main.alone(|| unsafe { rb_add_event_hook2(hook, events, data, SAFE_RAW_ARG) });
    })
}

/// Removes a hook that [`add`] added with the same data. No Ractor is in the hook afterwards, unless this is called in
/// it.
pub fn remove(main: MainRactor, hook: RawHook, data: VALUE) {
    main.alone(|| {
        // SAFETY: on the main Ractor. Removing what was never added does nothing.
        unsafe { rb_remove_event_hook_with_data(hook, data) };
    });
}
