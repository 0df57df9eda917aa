//! `MemprofilerPprof.enter_span`, which only lib/ruby_memprofiler_pprof/opentelemetry.rb calls.

use crate::vm::span;
use magnus::{Error, RModule, Ruby, Value, function};

/// Defines the function.
pub fn init(module: RModule) -> Result<(), Error> {
    module.define_module_function("enter_span", function!(enter_span, 2))
}

/// Puts this fiber into the span with these ids, Strings of 16 and 8 bytes, until the next call; with nil and nil, into
/// none.
fn enter_span(ruby: &Ruby, trace_id: Value, span_id: Value) {
    // Fails only on a frozen thread, which is no reason to make the program fail.
    let _ = span::set(ruby, [trace_id, span_id]);
}
