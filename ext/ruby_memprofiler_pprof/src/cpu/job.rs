//! What the VM calls while a sampler runs: the job that reads stacks, and the hook of threads' beginnings and ends.

use super::Sampler;
use crate::faults;
use crate::vm::hooks::{THREAD_BEGIN, THREAD_END, TraceArg};
use crate::vm::{cpu_timer, ractor, safepoint};
use rb_sys::{VALUE, rb_event_flag_t};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The events of the hook.
pub const THREAD_EVENTS: rb_event_flag_t = THREAD_BEGIN | THREAD_END;

/// The data of the hook, which it does not use. To the VM it looks like a small integer.
pub const DATA: VALUE = 1;

/// The job.
///
/// # Safety
/// Must run at a safe point of a Ruby thread.
pub unsafe extern "C" fn run(_: *mut c_void) {
    // The ticks stay; the next one asks again.
    if serves_this_ractor() && safepoint::has_room() {
        Sampler::running(Sampler::read_stacks);
    }
}

/// Whether threads of the running Ractor are sampled. Up to Ruby 3.2 those of others are not found.
fn serves_this_ractor() -> bool {
    cfg!(ruby_gte_3_3) || ractor::is_main()
}

/// The hook.
///
/// # Safety
/// The VM must call it in the thread that begins or ends, with the GVL held.
pub unsafe extern "C" fn on_thread(_: VALUE, arg: *const TraceArg) {
    if !serves_this_ractor() {
        return;
    }
    // SAFETY: the VM passes a valid argument.
    let event = unsafe { (*arg).event };
    Sampler::running(|sampler| {
        sampler.guarded("thread hook", || {
            let holder = sampler.holder();
            // SAFETY: on a Ruby thread, with its Ractor's GVL held; a sampler that runs has a live holder, which marks
            // the sites and threads.
            sampler.state.with(|state| unsafe {
                if event == THREAD_BEGIN { state.add_current(holder) } else { state.remove_current(holder) }
            });
        });
    });
}

impl Sampler {
    /// Reads the stacks of the threads that have ticked.
    pub(super) fn read_stacks(&self) {
        self.guarded("job", || {
            faults::point("cpu: job");
            // SAFETY: on a Ruby thread, at a safe point or in a method; a sampler that runs has a live holder, which
            // marks the sites.
            self.state.try_with(|state| unsafe {
                state.find_current(self.holder());
                state.read_stacks(self.holder());
            });
        });
    }

    /// Runs `body` unless there was a panic before. Must not unwind: the caller is the VM.
    fn guarded(&self, place: &'static str, body: impl FnOnce()) {
        if self.failure().is_none() && catch_unwind(AssertUnwindSafe(body)).is_err() {
            self.panicked(place);
        }
    }

    /// After a panic: uses no data any more.
    pub fn panicked(&self, place: &'static str) {
        faults::panicked(place);
        // Nobody marks the threads any more, which the handler would look into.
        if self.is_running() {
            cpu_timer::ignore();
        }
        // Only the first place counts.
        let _ = self.panicked.set(place);
    }
}
