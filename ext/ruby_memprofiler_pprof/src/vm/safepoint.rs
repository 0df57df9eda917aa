//! Running code soon, where Ruby code may run: the VM's postponed jobs.

use std::ffi::c_void;
use std::ptr::null_mut;

/// What can be run so. It must not unwind.
pub type Job = unsafe extern "C" fn(*mut c_void);

/// Asks the VM to run `job` at the next safe point of the main Ractor's running thread, once for any number of calls
/// until then. Does not allocate; safe in hooks.
#[cfg(not(ruby_gte_3_3))]
pub fn request(job: Job) {
    // SAFETY: the function may be called anywhere, even in signal handlers. If its buffer is full it does nothing.
    unsafe { rb_sys::rb_postponed_job_register_one(0, Some(job), null_mut()) };
}

/// Asks the VM to run `job` at the next safe point of the main Ractor's running thread, once for any number of calls
/// until then. Does not allocate; safe in hooks.
#[cfg(ruby_gte_3_3)]
pub fn request(job: Job) {
    // SAFETY: both functions may be called anywhere, even in signal handlers; registering a job again returns its
    // handle.
    unsafe { rb_sys::rb_postponed_job_trigger(rb_sys::rb_postponed_job_preregister(0, Some(job), null_mut())) };
}
