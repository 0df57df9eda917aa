//! Runs code soon, where Ruby code may run: the VM's postponed jobs.

use super::machine_stack;
use std::ffi::c_void;
use std::ptr::null_mut;

/// `POSTPONED_JOB_HANDLE_INVALID` of ruby/debug.h.
#[cfg(ruby_gte_3_3)]
const NO_HANDLE: rb_sys::rb_postponed_job_handle_t = !0;

/// The function of a job. It must not unwind. The VM runs all jobs at the next safe point of any thread, even in
/// another Ractor: a job has to check where it is, and with [`has_room`] whether it can work there.
pub type Job = unsafe extern "C" fn(*mut c_void);

/// Whether a job has enough stack left. Near the end the VM may jump out of it at any point, past what would release a
/// lock or end a borrow: there it must do nothing. Nor may it request itself, since the VM runs jobs until there is
/// none.
pub fn has_room() -> bool {
    !machine_stack::runs_out()
}

/// Makes [`request`] safe where the GVL is not held, and in signal handlers there. Up to Ruby 3.2 the VM counts a job
/// before it stores the function (vm_trace.c `postponed_job_register`), so a thread that runs jobs at that moment calls
/// what the slot held before: from now on that is at least a function. Must be called with the GVL.
pub fn prepare() {
    #[cfg(not(ruby_gte_3_3))]
    {
        /// Of the 1,000 for which vm_trace.c has room. Never all of them: `rb_postponed_job_register_one` believes that
        /// there are 24 more, and writes behind the buffer.
        const SLOTS: usize = 900;
        static PREPARED: std::sync::Once = std::sync::Once::new();
        unsafe extern "C" fn nothing(_: *mut c_void) {}
        // Once is enough: slots are reused, and never emptied.
        PREPARED.call_once(|| {
            for _ in 0..SLOTS {
                // SAFETY: stores the function, which may run at any time, or does nothing if there is no room.
                unsafe { rb_sys::rb_postponed_job_register(0, Some(nothing), null_mut()) };
            }
        });
    }
}

/// Asks the VM to run `job` at the next safe point, most likely the running thread's, once for any number of calls
/// until then. Does not allocate; safe in hooks.
#[cfg(not(ruby_gte_3_3))]
pub fn request(job: Job) {
    // SAFETY: the function may be called anywhere, even in signal handlers. Its buffer has room for 1,000 jobs, of
    // which this one is in it once at most.
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
