//! The VM's events around objects, as raw hooks: they cost less than TracePoints.
//!
//! From Ruby 4.0 on all Ractors share one list of hooks, which the VM changes, and whose hooks it frees, without a lock. So
//! that is done while the others stand still, and none is in a hook.

use super::{protect, ractor};
use crate::faults;
use magnus::Error;
use rb_sys::{VALUE, rb_event_flag_t};

unsafe extern "C" {
    // include/ruby/debug.h. Declared here because bindgen makes a Rust enum of the flags, which has no value for two
    // of them at once, and because a raw hook has another signature than the public one.
    fn rb_add_event_hook2(hook: RawHook, events: rb_event_flag_t, data: VALUE, flags: u32);
    fn rb_remove_event_hook_with_data(hook: RawHook, data: VALUE) -> i32;
}

/// `RUBY_EVENT_HOOK_FLAG_SAFE | RUBY_EVENT_HOOK_FLAG_RAW_ARG`.
const SAFE_RAW_ARG: u32 = 0x01 | 0x04;

/// An allocation: flags and class of the object are set, its contents are not.
pub const NEWOBJ: rb_event_flag_t = rb_sys::RUBY_INTERNAL_EVENT_NEWOBJ;
/// The death of an object, which is intact, while what it refers to may be gone.
pub const FREEOBJ: rb_event_flag_t = rb_sys::RUBY_INTERNAL_EVENT_FREEOBJ;

/// The end of a mark phase: what is not marked is dead, and nothing of it is swept yet.
pub const END_MARK: rb_event_flag_t = rb_sys::RUBY_INTERNAL_EVENT_GC_END_MARK;

/// The end of a sweep: everything dead has passed FREEOBJ.
pub const END_SWEEP: rb_event_flag_t = rb_sys::RUBY_INTERNAL_EVENT_GC_END_SWEEP;

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

/// What a raw hook is called with: the data it was registered with, and the event. It must not raise, allocate on
/// Ruby's heap, call Ruby code, or check interrupts.
pub type RawHook = unsafe extern "C" fn(data: VALUE, arg: *const TraceArg);

/// Calls `hook` with `data` at each of `events`, until [`remove`]d. The VM marks `data` as an object, so pass what
/// looks like a small integer.
///
/// # Safety
/// On the main Ractor with the GVL held, not in a hook. What `data` leads to must outlive the registration.
pub unsafe fn add(hook: RawHook, events: rb_event_flag_t, data: VALUE) -> Result<(), Error> {
    // SAFETY: on the main Ractor, with the GVL held, and not in a hook, for which others could wait. With RAW_ARG the
    // VM calls the function as a RawHook.
    protect(|| unsafe {
        faults::point("hook");
        ractor::alone(|| rb_add_event_hook2(hook, events, data, SAFE_RAW_ARG));
    })
}

/// Undoes [`add`] with the same hook and data. No Ractor is in the hook afterwards, if this is not called in it.
///
/// # Safety
/// On the main Ractor with the GVL held; in a hook only as for [`ractor::alone`].
pub unsafe fn remove(hook: RawHook, data: VALUE) {
    // SAFETY: on the main Ractor, with the GVL held; in a hook, from Ruby 4.0 on, only if there is no other Ractor.
    // Removing what was never added does nothing.
    unsafe {
        ractor::alone(|| {
            rb_remove_event_hook_with_data(hook, data);
        });
    }
}
