//! Stacks from Ruby's own backtraces, the slow way. Creating one allocates, which a hook must not do. So the stack is
//! read at the next safe point, where the innermost frames may have changed.

use super::Collector;
use super::hooked;
use super::mute::Mute;
use super::stacks::Deferred;
use crate::vm::names::FunctionName;
use crate::vm::{labels, lossy, protect, ractor, safepoint, threads};
use magnus::rb_sys::FromRawValue;
use magnus::{Error, RArray, RString, Value};
use memprofiler_core::labels::LabelSet;
use std::ffi::c_void;
use std::sync::Arc;

/// The job.
///
/// # Safety
/// Must run at a safe point of a Ruby thread.
pub unsafe extern "C" fn run(_: *mut c_void) {
    if !ractor::is_main() || !safepoint::has_room() {
        return Deferred::missed();
    }
    let _mute = Mute::new(threads::current_context());
    hooked::each(|collector| {
        // A stack that cannot be read stays empty; there is nobody to report it to.
        collector.guarded("backtrace job", || drop(read_stack(collector)));
    });
}

fn read_stack(collector: &Collector) -> Result<(), Error> {
    let context = threads::current_context();
    let Some(number) = collector.state.with(|state| state.sites.stacks.begin_deferred(context)) else { return Ok(()) };
    let frames = backtrace()?;
    let labels = collector.state.with(|state| state.options.labels);
    // SAFETY: the GVL is held, and the labels are copied at once.
    let labels = if labels { unsafe { labels::current() } } else { None };
    let labels = Arc::new(labels.map(|labels| LabelSet::clone(&labels)).unwrap_or_default());
    collector.state.with(|state| state.sites.stacks.store_deferred(number, &frames, &labels));
    Ok(())
}

/// Function and line of each frame of the running thread, innermost first.
fn backtrace() -> Result<Vec<(FunctionName, u32)>, Error> {
    // Not Thread#backtrace_locations: when a method returns, the VM may raise a pending exception of this thread.
    // Nothing can be raised here, so a Thread#kill would be lost for good.
    // SAFETY: the GVL is held and no borrow is alive across the call.
    let entries = protect(|| unsafe { rb_sys::rb_make_backtrace() })?;
    // SAFETY: the function returns an Array.
    let entries = RArray::from_value(unsafe { Value::from_raw(entries) });
    Ok(entries
        .into_iter()
        .flatten()
        .filter_map(RString::from_value)
        .map(|entry| parse(&lossy::string(entry)))
        .collect())
}

/// Parses "path:line:in `method'", with any of Ruby's quotes. C functions may lack a line, top-level code lacks a name.
fn parse(entry: &str) -> (FunctionName, u32) {
    let at = entry.rfind(":in `").or_else(|| entry.rfind(":in '"));
    let (place, name) = match at {
        Some(at) => (&entry[..at], entry[at + ":in `".len()..].trim_end_matches('\'')),
        None => (entry, ""),
    };
    let split = place.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    let (file, line) = split.unwrap_or((place, 0));
    (FunctionName { name: name.into(), file: file.into(), start_line: 0 }, line)
}
