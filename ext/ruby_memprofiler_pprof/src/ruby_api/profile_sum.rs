//! `MemprofilerPprof::Profile::Sum`: a sum of profiles that grows by one at a time, so that they need not all be in
//! memory.

use super::long_work::without_gvl;
use super::profile::{Profile, wrap};
use super::settle_class;
use magnus::typed_data::Obj;
use magnus::{DataTypeFunctions, Error, Module, Object, RClass, Ruby, TypedData, function, method};
use memprofiler_core::profile::{CombineError, Merger};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The Ruby object. Empty once its profile was taken, and during or after a failed addition.
#[derive(TypedData)]
#[magnus(class = "MemprofilerPprof::Profile::Sum", free_immediately)]
struct Sum(Mutex<Option<Merger>>);

impl DataTypeFunctions for Sum {}

/// Defines the class.
pub fn init(ruby: &Ruby, profile: RClass) -> Result<(), Error> {
    let class = profile.define_class("Sum", ruby.class_object())?;
    settle_class::<Sum>(ruby);
    class.define_singleton_method("new", function!(new, 1))?;
    class.define_method("add", method!(add, 1))?;
    class.define_method("profile", method!(profile_of, 0))
}

fn new(ruby: &Ruby, first: Obj<Profile>) -> Result<Obj<Sum>, Error> {
    let first = Arc::clone(&first.0);
    let merger = without_gvl(ruby, |interrupt| Merger::new(&first, interrupt))?;
    Ok(ruby.obj_wrap(Sum(Mutex::new(Some(merger)))))
}

fn add(ruby: &Ruby, this: Obj<Sum>, other: Obj<Profile>) -> Result<(), Error> {
    let other = Arc::clone(&other.0);
    let refused = |error| match error {
        CombineError::Incompatible(error) => {
            format!("profile {} cannot be merged with the first: {error}", error.index + 2)
        }
        CombineError::Interrupted(error) => error.to_string(),
    };
    let mut merger = take(ruby, &this)?;
    // An exception leaves part of the other profile in the sum: such a sum is not put back.
    without_gvl(ruby, |interrupt| merger.add(&other, interrupt).map_err(refused))?;
    *lock(&this) = Some(merger);
    Ok(())
}

fn profile_of(ruby: &Ruby, this: Obj<Sum>) -> Result<Obj<Profile>, Error> {
    let mut merger = take(ruby, &this)?;
    without_gvl(ruby, |interrupt| merger.finish(interrupt)).map(|profile| wrap(ruby, profile))
}

fn take(ruby: &Ruby, sum: &Sum) -> Result<Merger, Error> {
    lock(sum).take().ok_or_else(|| taken(ruby))
}

/// Only locked for moments.
fn lock(sum: &Sum) -> MutexGuard<'_, Option<Merger>> {
    sum.0.lock().unwrap_or_else(PoisonError::into_inner)
}

fn taken(ruby: &Ruby) -> Error {
    Error::new(ruby.exception_runtime_error(), "the sum was already taken")
}
