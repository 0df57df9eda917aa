//! The native extension of the gem ruby_memprofiler_pprof: a heap profiler that runs inside a Ruby process.

#![allow(missing_docs, reason = "magnus::init makes an undocumented function")]

mod allocator;
mod collector;
mod cpu;
mod faults;
mod ruby_api;
mod vm;

use magnus::{Error, Ruby};

#[magnus::init(name = "ruby_memprofiler_pprof")]
fn init(ruby: &Ruby) -> Result<(), Error> {
    // SAFETY: called while the extension is loaded. What collectors share is ordered without the GVL, and only the main
    // Ractor can start one.
    unsafe { rb_sys::rb_ext_ractor_safe(true) };
    ruby_api::init(ruby)
}
