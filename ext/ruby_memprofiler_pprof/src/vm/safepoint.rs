//! Runs code soon, where Ruby code may run: the VM's postponed jobs.

use std::ffi::c_void;
use std::ptr::null_mut;

/// `POSTPONED_JOB_HANDLE_INVALID` of ruby/debug.h.
#[cfg(ruby_gte_3_3)]
const NO_HANDLE: rb_sys::rb_postponed_job_handle_t = !0;

/// The function of a job. It must not unwind. The VM runs all jobs at the next safe point of any thread, even in
/// another Ractor: a job has to check where it is.
pub type Job = unsafe extern "C" fn(*mut c_void);

/// Asks the VM to run `job` at the next safe point, most likely the running thread's, once for any number of calls
/// until then. Does not allocate; safe in hooks.
#[cfg(not(ruby_gte_3_3))]
pub fn request(job: Job) {
    // SAFETY: the function may be called anywhere, even in signal handlers. If its buffer is full it does nothing.
    unsafe { rb_sys::rb_postponed_job_register_one(0, Some(job), null_mut()) };
}

/// Asks the VM to run `job` at the next safe point, most likely the running thread's, once for any number of calls
/// until then. Does not allocate; safe in hooks.
#[cfg(ruby_gte_3_3)]
pub fn request(job: Job) {
    // SAFETY: both functions only use atomic operations; registering a job again returns its handle. The table has 32
    // entries; if it is full there is no handle to trigger.
    unsafe {
        let handle = rb_sys::rb_postponed_job_preregister(0, Some(job), null_mut());
        if handle != NO_HANDLE {
            rb_sys::rb_postponed_job_trigger(handle);
        }
    }
}
