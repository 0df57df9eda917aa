//! The native extension of the gem ruby_memprofiler_pprof: a heap profiler that runs inside a Ruby process.

#![allow(missing_docs, reason = "magnus::init makes an undocumented function")]

mod allocator;
mod collector;
mod cpu;
mod faults;
mod ruby_api;
mod vm;

use magnus::{Error, Ruby};
use rb_sys::ruby_vm_t;

#[magnus::init(name = "ruby_memprofiler_pprof")]
fn init(ruby: &Ruby) -> Result<(), Error> {
    // SAFETY: called while the extension is loaded. What collectors share is ordered without the GVL, and only the main
    // Ractor can start one.
    unsafe { rb_sys::rb_ext_ractor_safe(true) };
    vm::end::call_at(stop)?;
    ruby_api::init(ruby)
}

/// Stops what would still use the VM, which is ending. Mostly it has ended by then, but not what was started after that,
/// or in a child that an `at_exit` block or a finalizer has forked.
unsafe extern "C" fn stop(_: *mut ruby_vm_t) {
    collector::watch::end();
    collector::windows::end();
    vm::cpu_timer::end();
}
