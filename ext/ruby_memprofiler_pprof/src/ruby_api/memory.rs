//! `MemprofilerPprof.memory_data` and `Collector#memory_data`, which `MemprofilerPprof::Memory` wraps.

use super::collector::{RubyCollector, abandoned, check_failure};
use super::errors;
use super::ractors::on_main_ractor;
use crate::collector::ledger;
use crate::collector::mute::Mute;
use crate::vm::{gvl, mutex, ractor, threads};
use magnus::typed_data::Obj;
use magnus::{Error, RModule, RString, Ruby, function, prelude::*};
use memprofiler_core::ledger::Ledger;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Defines the function of the module.
pub fn init(module: RModule) -> Result<(), Error> {
    module.define_module_function("memory_data", function!(of_process, 1))
}

/// A ledger as JSON, without what a collector knows; with a walk over the heap if it is `full`.
fn of_process(ruby: &Ruby, full: bool) -> Result<RString, Error> {
    let mute = Mute::new(threads::current_context());
    if full && is_alone(ruby)? {
        // SAFETY: there are no other Ractors, as just checked.
        let measured = unsafe { ledger::measure(ruby, &mute) }?;
        json(ruby, &measured.ledger(None))
    } else {
        let glance = ledger::glance(ruby, None)?;
        json(ruby, &gvl::without_gvl(|| glance.ledger()))
    }
}

/// A ledger as JSON, with what the collector knows; with a walk over the heap if it is `full`.
pub fn memory_data(ruby: &Ruby, this: Obj<RubyCollector>, full: bool) -> Result<RString, Error> {
    check_failure(ruby, &this)?;
    if !full || !is_alone(ruby)? {
        let _mute = Mute::new(threads::current_context());
        let glance = ledger::glance(ruby, Some(&this.collector))?;
        return json(ruby, &gvl::without_gvl(|| glance.ledger()));
    }
    let measured = {
        let mute = Mute::new(threads::current_context());
        // SAFETY: there are no other Ractors, as just checked.
        unsafe { ledger::measure(ruby, &mute) }?
    };
    // Only then, since it takes memory.
    if this.collector.was_started() {
        name_samples(ruby, this)?;
    }
    json(ruby, &measured.ledger(Some(&this.collector)))
}

/// So that sites are known.
pub fn name_samples(ruby: &Ruby, this: Obj<RubyCollector>) -> Result<(), Error> {
    let mutex = this.flushing().ok_or_else(|| errors::not_started(ruby))?;
    let _locked = mutex::Locked::new(ruby.get_inner(mutex))?;
    let mute = Mute::new(threads::current_context());
    let named = catch_unwind(AssertUnwindSafe(|| this.collector.name_samples(ruby, &mute)));
    let Ok(named) = named else {
        this.collector.panicked("flush");
        return Err(abandoned(ruby, &this, "flush"));
    };
    named.map_err(|failure| errors::flush(ruby, failure))
}

fn json(ruby: &Ruby, ledger: &Ledger) -> Result<RString, Error> {
    let json = serde_json::to_string(ledger).map_err(|failure| errors::error(ruby, failure.to_string()))?;
    let json = ruby.str_new(&json);
    json.freeze();
    Ok(json)
}

/// Whether this is the only Ractor.
fn is_alone(ruby: &Ruby) -> Result<bool, Error> {
    Ok(on_main_ractor(ruby)? && ractor::count(ruby)? == 1)
}
