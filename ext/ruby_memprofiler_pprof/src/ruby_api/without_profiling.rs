//! `MemprofilerPprof.without_profiling`, and whether it is in force.

use super::settle_class;
use crate::collector::mute::{Mute, is_muted};
use crate::faults;
use crate::vm::{protect, threads};
use magnus::prelude::*;
use magnus::typed_data::Obj;
use magnus::{DataTypeFunctions, Error, RModule, Ruby, TypedData, Value, function};
use std::cell::Cell;

/// Holds the mute of a block, and is itself held by the block's machine stack only. If the fiber is abandoned in the
/// middle of the block, the GC ends the mute, so that it does not apply to a fiber that reuses the address.
#[derive(TypedData)]
#[magnus(class = "MemprofilerPprof::MutedBlock", free_immediately)]
struct MutedBlock(Cell<Option<Mute>>);

impl DataTypeFunctions for MutedBlock {}

/// Defines the functions.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    module.define_class("MutedBlock", ruby.class_object())?;
    settle_class::<MutedBlock>(ruby);
    module.funcall::<_, _, Value>("private_constant", ("MutedBlock",))?;
    module.define_module_function("muted?", function!(muted, 0))?;
    module.define_module_function("without_profiling", function!(without_profiling, 0))
}

/// Whether what this fiber allocates is not sampled.
fn muted() -> bool {
    is_muted(threads::current_context())
}

/// Calls the block. What this fiber allocates meanwhile is not sampled.
fn without_profiling(ruby: &Ruby) -> Result<Value, Error> {
    if !ruby.block_given() {
        return Err(Error::new(ruby.exception_arg_error(), "without_profiling needs a block"));
    }
    let mute = Mute::new(threads::current_context());
    // Empty at first: if wrapping fails, nothing would free its contents.
    let block: Obj<MutedBlock> = protect(|| {
        faults::point("without_profiling");
        ruby.obj_wrap(MutedBlock(Cell::new(None)))
    })?;
    block.0.set(Some(mute));
    let result = ruby.yield_values(());
    drop(block.0.take());
    result
}
