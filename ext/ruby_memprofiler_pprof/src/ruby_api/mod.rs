//! The classes that users see: arguments, errors and return values; nothing else.

mod collector;
pub mod errors;
mod module;
mod options;
mod profile_data;

use magnus::{Error, Ruby};

/// Defines the module and its classes.
pub fn init(ruby: &Ruby) -> Result<(), Error> {
    let module = ruby.define_module("MemprofilerPprof")?;
    errors::init(ruby, module)?;
    module::init(module)?;
    profile_data::init(ruby, module)?;
    collector::init(ruby, module)
}
