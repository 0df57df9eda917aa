//! Functions of the module `MemprofilerPprof`.

use crate::collector::{hooked, mute::Mute};
use crate::vm::threads;
use magnus::rb_sys::FromRawValue;
use magnus::{Error, RArray, RModule, Ruby, Value, function};

/// Defines the functions.
pub fn init(module: RModule) -> Result<(), Error> {
    module.define_module_function("collectors", function!(collectors, 0))?;
    module.define_module_function("without_profiling", function!(without_profiling, 0))
}

/// All collectors that run, or were stopped and not flushed since.
fn collectors(ruby: &Ruby) -> Result<RArray, Error> {
    let list = ruby.ary_new();
    for collector in hooked() {
        // SAFETY: collectors with hooks are roots of the GC.
        list.push(unsafe { Value::from_raw(collector) })?;
    }
    Ok(list)
}

/// Calls the block; what this thread or fiber allocates meanwhile is not sampled.
fn without_profiling(ruby: &Ruby) -> Result<Value, Error> {
    let _mute = Mute::new(threads::current_context());
    ruby.yield_values(())
}
