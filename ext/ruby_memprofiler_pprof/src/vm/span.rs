//! The span of a trace that the running fiber is in.
//!
//! Like its labels (`labels.rs`), a fiber's span is in fiber-local variables: the two Strings in which OpenTelemetry
//! keeps the ids, so that entering or leaving a span allocates nothing.

use super::object::{Type, flags, is_heap};
use super::protect;
use magnus::rb_sys::{AsRawId, AsRawValue};
use magnus::{Error, Ruby, Value};
use memprofiler_core::exemplars::Span;
use rb_sys::ID;
use std::sync::OnceLock;

/// The names of the variables.
const NAMES: [&str; 2] = ["__ruby_memprofiler_pprof_trace_id__", "__ruby_memprofiler_pprof_span_id__"];

/// Their IDs, once a fiber has been in a span.
static VARIABLES: OnceLock<[ID; 2]> = OnceLock::new();

/// The span of the running fiber. Allocates nothing and runs no Ruby code.
///
/// # Safety
/// Must be called in a hook, or with the GVL held.
#[inline]
pub unsafe fn current() -> Option<Span> {
    let &[trace_id, span_id] = VARIABLES.get()?;
    // SAFETY: in a hook or with the GVL held.
    let (trace_id, span_id) = unsafe { (bytes(trace_id)?, bytes(span_id)?) };
    Some(Span { trace_id: u128::from_be_bytes(trace_id), span_id: u64::from_be_bytes(span_id) })
}

/// The bytes in a variable of the running fiber, if it holds a String of this length.
///
/// # Safety
/// As for [`current`].
unsafe fn bytes<const LENGTH: usize>(variable: ID) -> Option<[u8; LENGTH]> {
    // SAFETY: looks into a table that belongs to the running fiber; nothing allocates a Ruby object while it changes
    // such a table.
    let value = unsafe { rb_sys::rb_thread_local_aref(rb_sys::rb_thread_current(), variable) };
    // SAFETY: the variable keeps the object alive.
    if !is_heap(value) || Type::of_flags(unsafe { flags(value) }) != Type::STRING {
        return None;
    }
    // SAFETY: a live String, which nothing changes in the meantime, so it has as many bytes as it says.
    unsafe {
        let length = rb_sys::RSTRING_LEN(value) as usize;
        (length == LENGTH).then(|| *rb_sys::RSTRING_PTR(value).cast::<[u8; LENGTH]>())
    }
}

/// Puts the running fiber into the span with these ids: Strings of 16 and 8 bytes, big-endian. With anything else it is
/// in no span. Fails if the thread is frozen.
pub fn set(ruby: &Ruby, ids: [Value; 2]) -> Result<(), Error> {
    let variables = match VARIABLES.get() {
        Some(&variables) => variables,
        None => {
            let variables = protect(|| NAMES.map(|name| ruby.intern(name).as_raw()))?;
            *VARIABLES.get_or_init(|| variables)
        }
    };
    protect(|| {
        // SAFETY: the GVL is held, as `ruby` shows.
        let thread = unsafe { rb_sys::rb_thread_current() };
        for (variable, id) in variables.into_iter().zip(ids) {
            // SAFETY: as above; the thread is the running one.
            unsafe { rb_sys::rb_thread_local_aset(thread, variable, id.as_raw()) };
        }
    })
}
