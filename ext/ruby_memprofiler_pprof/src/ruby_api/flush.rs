//! `Collector#flush` and what else takes a profile.

use super::collector::{RubyCollector, abandoned, check_failure};
use super::errors::{self, Wrong, argument};
use super::flush_options::{ALL, check_flush_options, flush_options};
use super::profile_data::ProfileData;
use crate::collector::mute::Mute;
use crate::collector::{FlushFailure, FlushOptions, Flushed};
use crate::vm::{machine_stack, mutex, protect, threads};
use magnus::scan_args::scan_args;
use magnus::typed_data::Obj;
use magnus::{Error, RClass, RHash, Ruby, Value, function, method, prelude::*};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Defines the methods.
pub fn init(class: RClass) -> Result<(), Error> {
    class.define_method("flush", method!(flush, -1))?;
    class.define_method("peak_profile", method!(peak_profile, -1))?;
    class.define_private_method("flush_for", method!(flush_for, -1))?;
    class.define_singleton_method("check_flush_options", function!(check_flush_options, -1))
}

fn flush(ruby: &Ruby, this: Obj<RubyCollector>, arguments: &[Value]) -> Result<Obj<ProfileData>, Error> {
    machine_stack::overwrite_remains();
    take_profile(ruby, this, Some(0), arguments)
}

/// A profile of the live set when the process had the most memory; None if that is not known.
fn peak_profile(ruby: &Ruby, this: Obj<RubyCollector>, arguments: &[Value]) -> Result<Option<Obj<ProfileData>>, Error> {
    let options = flush_options(ruby, keywords(arguments)?, ALL)?;
    exclusively(ruby, this, |mute| this.collector.peak_profile(ruby, options, mute))
}

/// `flush` for the reader with this number, or for none if it is nil, followed by the keywords.
fn flush_for(ruby: &Ruby, this: Obj<RubyCollector>, arguments: &[Value]) -> Result<Obj<ProfileData>, Error> {
    machine_stack::overwrite_remains();
    let [number, keywords @ ..] = arguments else {
        return Err(Error::new(ruby.exception_arg_error(), "flush_for needs a reader"));
    };
    let reader = <Option<usize>>::try_convert(*number)?;
    if reader.is_some_and(|reader| !this.collector.has_reader(reader)) {
        return Err(argument(ruby, Wrong::Value, "reader", *number, "the number of an open reader"));
    }
    take_profile(ruby, this, reader, keywords)
}

/// Not inlined: the uninitialised parts of its frame have been overwritten.
#[inline(never)]
fn take_profile(
    ruby: &Ruby,
    this: Obj<RubyCollector>,
    reader: Option<usize>,
    arguments: &[Value],
) -> Result<Obj<ProfileData>, Error> {
    let options = FlushOptions { reader, ..flush_options(ruby, keywords(arguments)?, ALL)? };
    let data = exclusively(ruby, this, |mute| this.collector.flush(ruby, options, mute).map(Some))?;
    data.ok_or_else(|| errors::not_started(ruby))
}

/// What `flush` returns, as an object, if it returns something. One of them runs at a time.
fn exclusively(
    ruby: &Ruby,
    this: Obj<RubyCollector>,
    flush: impl FnOnce(&Mute) -> Result<Option<Flushed>, FlushFailure>,
) -> Result<Option<Obj<ProfileData>>, Error> {
    check_failure(ruby, &this)?;
    if !this.collector.was_started() {
        return Err(errors::not_started(ruby));
    }
    let mutex = this.flushing().ok_or_else(|| errors::not_started(ruby))?;
    // Not muted yet: a fiber scheduler may never resume what waits here, and the mute would last forever.
    let _locked = mutex::Locked::new(ruby.get_inner(mutex))?;
    let mute = Mute::new(threads::current_context());
    let data = ProfileData::new(ruby)?;
    // Nothing after the flush may check interrupts: an exception would discard the profile.
    let Ok(flushed) = catch_unwind(AssertUnwindSafe(|| flush(&mute))) else {
        this.collector.panicked("flush");
        return Err(abandoned(ruby, &this, "flush"));
    };
    match flushed {
        Ok(flushed) => Ok(flushed.map(|flushed| {
            data.fill(flushed);
            data
        })),
        // If a panic in a hook is the reason, the hooks have to go.
        Err(failure) => check_failure(ruby, &this).and(Err(errors::flush(ruby, failure))),
    }
}

/// Created without being sampled: this Hash is in no profile of a running collector.
fn keywords(arguments: &[Value]) -> Result<RHash, Error> {
    let _mute = Mute::new(threads::current_context());
    Ok(protect(|| scan_args::<(), (), (), (), RHash, ()>(arguments))??.keywords)
}
