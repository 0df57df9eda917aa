//! `MemprofilerPprof::Faults`, for specs.

use super::injection::{self, Fault};
use super::{child, heap, trap};
use magnus::scan_args::scan_args;
use magnus::{Error, Module, Object, RModule, Ruby, Symbol, Value, block::Proc, function};

/// Defines the module.
pub fn init(module: RModule) -> Result<(), Error> {
    let faults = module.define_module("Faults")?;
    faults.define_singleton_method("inject", function!(inject, -1))?;
    faults.define_singleton_method("clear", function!(injection::clear, 0))?;
    faults.define_singleton_method("allocation_limit=", function!(injection::set_allocation_limit, 1))?;
    faults.define_singleton_method("arm_traps", function!(arm_traps, 0))?;
    faults.define_singleton_method("trap_counts", function!(trap::counts, 0))?;
    faults.define_singleton_method("heap_figures", function!(heap::figures, 1))?;
    faults.define_singleton_method("heap_described", function!(heap::described, 0))?;
    faults.define_singleton_method("heap_paths", function!(heap::paths, 1))?;
    child::init(faults)
}

fn inject(ruby: &Ruby, arguments: &[Value]) -> Result<(), Error> {
    let arguments = scan_args::<(String,), (Option<Symbol>,), (), (), (), Option<Proc>>(arguments)?;
    let ((place,), (fault,), block) = (arguments.required, arguments.optional, arguments.block);
    let fault = match (fault.map(|fault| fault.name().map(std::borrow::Cow::into_owned)).transpose()?.as_deref(), block)
    {
        (None, Some(block)) => injection::call(ruby, block),
        (Some("panic"), None) => Fault::Panic,
        (Some("deny"), None) => Fault::Denial,
        (Some("allocate"), None) => Fault::Allocation,
        (Some("lock"), None) => Fault::Lock,
        (Some("memory"), None) => Fault::Memory,
        (Some("interrupts"), None) => Fault::Interrupts,
        (Some("sleep"), None) => Fault::Sleep,
        (Some("kill"), None) => Fault::Kill,
        (Some("hang"), None) => Fault::Hang,
        _ => return Err(Error::new(ruby.exception_arg_error(), "no such fault")),
    };
    injection::inject(place, fault);
    Ok(())
}

fn arm_traps(ruby: &Ruby) {
    trap::arm(ruby);
}
