//! The classes that users see: only arguments, errors and return values.

mod collector;
mod cpu;
mod diagnosis;
mod directory;
pub mod errors;
mod flush;
mod flush_options;
mod labels;
mod long_work;
mod memory;
mod module;
mod options;
mod profile;
mod profile_data;
mod profile_sum;
mod profile_views;
mod ractors;
mod retainers;
mod span;
mod stats;
mod tags;
mod watch;
mod without_profiling;

use crate::vm::iseq;
use magnus::{Error, Ruby, TypedData};

/// Looks up the class of a type. Otherwise magnus does so when it creates the first object: by a method call, in which
/// the VM may switch threads or raise, while it holds a lock for which other threads then wait without releasing the
/// GVL.
fn settle_class<T: TypedData>(ruby: &Ruby) {
    T::class(ruby);
}

/// Defines the module and its classes.
pub fn init(ruby: &Ruby) -> Result<(), Error> {
    iseq::init(ruby);
    let module = ruby.define_module("MemprofilerPprof")?;
    errors::init(ruby, module)?;
    module::init(module)?;
    memory::init(module)?;
    directory::init(module)?;
    without_profiling::init(ruby, module)?;
    diagnosis::init(module)?;
    labels::init(ruby, module)?;
    span::init(module)?;
    watch::init(ruby, module)?;
    profile::init(ruby, module)?;
    profile_data::init(ruby, module)?;
    #[cfg(feature = "faults")]
    crate::faults::api::init(module)?;
    cpu::init(ruby, module)?;
    collector::init(ruby, module)
}
