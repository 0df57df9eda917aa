//! `MemprofilerPprof::Profile::Sum`: a sum of profiles that grows by one at a time, so that not all need be in memory.

use super::errors;
use super::profile::{Profile, wrap};
use super::settle_class;
use crate::vm::threads::without_gvl;
use magnus::typed_data::Obj;
use magnus::{DataTypeFunctions, Error, Module, Object, RClass, Ruby, TypedData, function, method};
use memprofiler_core::analysis::Merger;
use std::sync::{Arc, Mutex, PoisonError};

/// The Ruby object. Empty when its profile has been taken.
#[derive(TypedData)]
#[magnus(class = "MemprofilerPprof::Profile::Sum", free_immediately)]
struct Sum(Arc<Mutex<Option<Merger>>>);

impl DataTypeFunctions for Sum {}

/// Defines the class.
pub fn init(ruby: &Ruby, profile: RClass) -> Result<(), Error> {
    let class = profile.define_class("Sum", ruby.class_object())?;
    settle_class::<Sum>(ruby);
    class.define_singleton_method("new", function!(new, 1))?;
    class.define_method("add", method!(add, 1))?;
    class.define_method("profile", method!(profile_of, 0))
}

fn new(ruby: &Ruby, first: Obj<Profile>) -> Obj<Sum> {
    let first = Arc::clone(&first.0);
    let merger = without_gvl(move || Merger::new(&first));
    ruby.obj_wrap(Sum(Arc::new(Mutex::new(Some(merger)))))
}

fn add(ruby: &Ruby, this: Obj<Sum>, other: Obj<Profile>) -> Result<(), Error> {
    let (sum, other) = (Arc::clone(&this.0), Arc::clone(&other.0));
    let added = without_gvl(move || {
        let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        sum.as_mut().map(|merger| merger.add(&other))
    });
    let added = added.ok_or_else(|| taken(ruby))?;
    added.map_err(|error| {
        errors::profile(ruby, format!("profile {} cannot be merged with the first: {error}", error.index + 2))
    })
}

fn profile_of(ruby: &Ruby, this: Obj<Sum>) -> Result<Obj<Profile>, Error> {
    let sum = Arc::clone(&this.0);
    let taken_out = without_gvl(move || {
        let merger = sum.lock().unwrap_or_else(PoisonError::into_inner).take();
        merger.map(Merger::finish)
    });
    taken_out.map(|profile| wrap(ruby, profile)).ok_or_else(|| taken(ruby))
}

fn taken(ruby: &Ruby) -> Error {
    Error::new(ruby.exception_runtime_error(), "the sum has been taken already")
}
