//! `MemprofilerPprof::ProfileData`.

use super::options;
use super::settle_class;
use crate::collector::Flushed;
use crate::collector::mute::Mute;
use crate::faults;
use crate::vm::{protect, threads};
use magnus::typed_data::Obj;
use magnus::{DataTypeFunctions, Error, RModule, RString, Ruby, Symbol, TypedData, method, prelude::*};
use std::sync::OnceLock;
use std::time::Duration;

/// The Ruby object.
#[derive(TypedData)]
#[magnus(class = "MemprofilerPprof::ProfileData", size, free_immediately, frozen_shareable)]
pub struct ProfileData(OnceLock<Flushed>);

impl DataTypeFunctions for ProfileData {
    fn size(&self) -> usize {
        size_of::<Self>() + self.0.get().map_or(0, |flushed| flushed.pprof.capacity())
    }
}

impl ProfileData {
    /// Without a profile yet, which [`fill`](Self::fill) adds: once there is a profile, nothing may fail any more.
    pub fn new(ruby: &Ruby) -> Result<Obj<Self>, Error> {
        protect(|| {
            faults::point("profile data");
            ruby.obj_wrap(Self(OnceLock::new()))
        })
    }

    /// Stores the result of a flush.
    pub fn fill(&self, flushed: Flushed) {
        self.0.get_or_init(|| flushed);
    }

    fn flushed(&self) -> &Flushed {
        self.0.get_or_init(Flushed::default)
    }
}

/// Defines the class.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("ProfileData", ruby.class_object())?;
    settle_class::<ProfileData>(ruby);
    class.define_method("pprof_data", method!(pprof_data, 0))?;
    class.define_method("time_nanos", method!(time_nanos, 0))?;
    class.define_method("duration_nanos", method!(duration_nanos, 0))?;
    class.define_method("sample_type_names", method!(sample_type_names, 0))?;
    class.define_method("empty?", method!(is_empty, 0))?;
    class.define_method("heap_samples_count", method!(heap_samples_count, 0))?;
    class.define_method("allocation_samples_count", method!(allocation_samples_count, 0))?;
    class.define_method("dropped_samples_heap_bufsize", method!(dropped_samples_heap_bufsize, 0))?;
    class.define_method("flush_duration_nsecs", method!(flush_duration_nsecs, 0))?;
    class.define_method("pprof_serialization_nsecs", method!(pprof_serialization_nsecs, 0))?;
    class.define_method("sample_add_nsecs", method!(sample_add_nsecs, 0))?;
    class.define_method("sample_add_without_gvl_nsecs", method!(sample_add_without_gvl_nsecs, 0))?;
    class.define_method("gvl_proactive_yield_count", method!(gvl_proactive_yield_count, 0))?;
    class.define_method("gvl_proactive_check_yield_count", method!(gvl_proactive_check_yield_count, 0))?;
    class.define_method("longest_gvl_hold_nsecs", method!(longest_gvl_hold_nsecs, 0))?;
    class.define_method("longest_gvl_hold_cpu_nsecs", method!(longest_gvl_hold_cpu_nsecs, 0))
}

fn pprof_data(ruby: &Ruby, this: Obj<ProfileData>) -> Result<RString, Error> {
    let _mute = Mute::new(threads::current_context());
    protect(|| {
        faults::point("pprof_data");
        ruby.str_from_slice(&this.flushed().pprof)
    })
}

fn time_nanos(this: Obj<ProfileData>) -> i64 {
    this.flushed().time_nanos
}

fn duration_nanos(this: Obj<ProfileData>) -> i64 {
    this.flushed().duration_nanos
}

fn sample_type_names(ruby: &Ruby, this: Obj<ProfileData>) -> Symbol {
    ruby.to_symbol(options::name_of(this.flushed().sample_type_names))
}

fn is_empty(this: Obj<ProfileData>) -> bool {
    this.flushed().sums == 0
}

fn heap_samples_count(this: Obj<ProfileData>) -> usize {
    this.flushed().heap_samples
}

fn allocation_samples_count(this: Obj<ProfileData>) -> usize {
    this.flushed().allocation_samples
}

fn dropped_samples_heap_bufsize(this: Obj<ProfileData>) -> u64 {
    this.flushed().thinned
}

fn flush_duration_nsecs(this: Obj<ProfileData>) -> u64 {
    nanoseconds(this.flushed().duration)
}

fn pprof_serialization_nsecs(this: Obj<ProfileData>) -> u64 {
    nanoseconds(this.flushed().serialization)
}

fn sample_add_nsecs(this: Obj<ProfileData>) -> u64 {
    nanoseconds(this.flushed().sample_add)
}

fn sample_add_without_gvl_nsecs(this: Obj<ProfileData>) -> u64 {
    nanoseconds(this.flushed().sample_add_without_gvl)
}

fn gvl_proactive_yield_count(this: Obj<ProfileData>) -> usize {
    this.flushed().holds.yields
}

fn gvl_proactive_check_yield_count(this: Obj<ProfileData>) -> usize {
    this.flushed().holds.checks
}

fn longest_gvl_hold_nsecs(this: Obj<ProfileData>) -> u64 {
    nanoseconds(this.flushed().holds.longest)
}

fn longest_gvl_hold_cpu_nsecs(this: Obj<ProfileData>) -> u64 {
    nanoseconds(this.flushed().holds.longest_cpu)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
