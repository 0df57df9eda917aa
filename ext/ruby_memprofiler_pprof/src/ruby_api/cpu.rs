//! The native part of `MemprofilerPprof::CPU`.

use super::errors;
use super::flush_options::{OF_CPU, flush_options};
use super::profile_data::ProfileData;
use super::ractors::check_ractors;
use super::{options, settle_class, tags};
use crate::collector::mute::Mute;
use crate::collector::walker_check;
use crate::cpu::{Options, Sampler, StartFailure, Threads};
use crate::vm::cpu_clock::{NativeId, native_id};
use crate::vm::ractor::MainRactor;
use crate::vm::{cpu_timer, gc, mutex, threads};
use magnus::block::Proc;
use magnus::rb_sys::AsRawValue;
use magnus::typed_data::Obj;
use magnus::value::Opaque;
use magnus::{DataTypeFunctions, Error, RArray, RHash, RModule, Ruby, TypedData, Value, method, prelude::*};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// The Ruby object.
#[derive(Default, TypedData)]
#[magnus(class = "MemprofilerPprof::CPU::Sampler", mark, compact, size, free_immediately, wb_protected)]
pub struct RubySampler {
    sampler: Sampler,
    /// A Thread::Mutex that allows one flush at a time.
    flushing: Cell<Option<Opaque<Value>>>,
}

impl RubySampler {
    /// Ends sampling.
    fn stop(&self) {
        // SAFETY: in a method, on the main Ractor: others have no access to a sampler that was started, and stop none.
        self.sampler.stop(unsafe { MainRactor::new() });
    }
}

impl DataTypeFunctions for RubySampler {
    fn mark(&self, marker: &magnus::gc::Marker) {
        // SAFETY: called by the GC as the mark function.
        unsafe { self.sampler.mark() };
        if let Some(mutex) = self.flushing.get() {
            // SAFETY: the GC runs on a Ruby thread.
            marker.mark(unsafe { Ruby::get_unchecked() }.get_inner(mutex));
        }
    }

    fn compact(&self, _compactor: &magnus::gc::Compactor) {
        // SAFETY: called by the GC as the compact function. What `mark` marked is pinned.
        unsafe { self.sampler.compact() };
    }

    /// Frees it, unless it runs: at the VM's end, if a finalizer has started it last.
    fn free(self: Box<Self>) {
        if self.sampler.is_running() {
            Box::leak(self);
        }
    }

    fn size(&self) -> usize {
        self.sampler.bytes()
    }
}

/// Defines the class.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    // Asks the environment, before the program changes it.
    threads::share_natives();
    let class = module.define_module("CPU")?.define_class("Sampler", ruby.class_object())?;
    class.define_alloc_func::<RubySampler>();
    settle_class::<RubySampler>(ruby);
    class.define_method("initialize", method!(initialize, 0))?;
    class.define_private_method("initialize_copy", method!(initialize_copy, 1))?;
    class.define_method("start", method!(start, 2))?;
    class.define_method("stop", method!(stop, 0))?;
    class.define_method("flush", method!(flush, 2))?;
    class.define_method("running?", method!(is_running, 0))?;
    class.define_method("stats", method!(stats, 0))?;
    class.define_method("after_fork", method!(after_fork, 0))
}

fn initialize(ruby: &Ruby, this: Obj<RubySampler>) -> Result<(), Error> {
    let mutex: Value = ruby.class_object().const_get::<_, Value>("Mutex")?.funcall("new", ())?;
    this.flushing.set(Some(Opaque::from(mutex)));
    gc::refer(this.as_value(), mutex);
    Ok(())
}

fn initialize_copy(ruby: &Ruby, _this: Obj<RubySampler>, _other: Value) -> Result<Value, Error> {
    Err(Error::new(ruby.exception_type_error(), "a MemprofilerPprof::CPU::Sampler cannot be copied"))
}

/// Starts with a Hash of all options, on what the Proc `threads` returns: pairs of Thread and native id.
fn start(ruby: &Ruby, this: Obj<RubySampler>, settings: RHash, threads: Proc) -> Result<(), Error> {
    check_failure(ruby, &this)?;
    // Only the walker's check traces allocations.
    let main = check_ractors(ruby, !walker_check::has_run())?;
    walker_check::run(ruby, main)?;
    let options = start_options(ruby, settings)?;
    let signal = options.signal;
    let mutex = this.flushing.get().ok_or_else(|| errors::not_started(ruby))?;
    // A flush that goes on needs what a start forgets.
    let _locked = mutex::Locked::new(ruby.get_inner(mutex))?;
    // As late as this, since no other thread runs from then on, and so none begins or ends.
    let threads: RArray = threads.call(())?;
    let mut list = Vec::with_capacity(threads.len());
    for pair in threads {
        let (thread, native) = <(Value, Option<NativeId>)>::try_convert(pair)?;
        let native = if thread.as_raw() == threads::current() { Some(native_id()) } else { native };
        list.extend(native.map(|native| (thread.as_raw(), native)));
    }
    // SAFETY: `this` is in use; the Array keeps the threads alive.
    let started = unsafe { this.sampler.start(ruby, main, this.as_raw(), options, &list) };
    started.map_err(|failure| match failure {
        StartFailure::Running => {
            errors::error(ruby, "a CPU profile is being taken already, one at a time: stop it first".to_owned())
        }
        StartFailure::NoSignal(reason) => errors::error(
            ruby,
            format!("signal {signal} cannot be used: {reason}; without the option signal one is taken that is free"),
        ),
        StartFailure::NoTimer(reason) => errors::error(ruby, format!("no timer on CPU time can be had: {reason}")),
        StartFailure::Raised(error) => error,
    })
}

fn start_options(ruby: &Ruby, settings: RHash) -> Result<Options, Error> {
    const SECOND: u64 = 1_000_000_000;
    let get = |name: &str| settings.lookup::<_, Value>(ruby.to_symbol(name));
    let frequency = options::integer(ruby, "frequency", get("frequency")?, 1, 10_000)?;
    let signal = get("signal")?;
    let signal = if signal.is_nil() {
        cpu_timer::free_signal().ok_or_else(|| {
            errors::error(ruby, "no real-time signal is free: choose one with the option signal".to_owned())
        })?
    } else {
        options::integer(ruby, "signal", signal, 1, 64)? as i32
    };
    Ok(Options {
        period: Duration::from_nanos(SECOND / frequency),
        labels: options::boolean(ruby, "labels", get("labels")?)?,
        thread_names: options::boolean(ruby, "thread_names", get("thread_names")?)?,
        threads: if get("only")?.is_nil() {
            Threads::All
        } else {
            options::choice(ruby, "only", get("only")?, &[("thread", Threads::These)])?
        },
        signal,
    })
}

fn check_failure(ruby: &Ruby, this: &RubySampler) -> Result<(), Error> {
    let Some(place) = this.sampler.failure() else { return Ok(()) };
    this.stop();
    Err(errors::internal(ruby, place))
}

fn stop(this: Obj<RubySampler>) {
    this.stop();
}

fn flush(ruby: &Ruby, this: Obj<RubySampler>, keywords: RHash, tags: Value) -> Result<Obj<ProfileData>, Error> {
    check_failure(ruby, &this)?;
    let options = flush_options(ruby, keywords, OF_CPU)?;
    let tags = tags::from_ruby(ruby, tags)?;
    if !this.sampler.was_started() {
        return Err(errors::not_started(ruby));
    }
    let mutex = this.flushing.get().ok_or_else(|| errors::not_started(ruby))?;
    // Not muted yet: a fiber scheduler may never resume what waits here, and the mute would last forever.
    let _locked = mutex::Locked::new(ruby.get_inner(mutex))?;
    let mute = Mute::new(threads::current_context());
    let data = ProfileData::new(ruby)?;
    // Nothing after the flush may check interrupts: an exception would discard the profile.
    // SAFETY: in a method, on the main Ractor: others have no access to the object.
    let flush = AssertUnwindSafe(|| unsafe { this.sampler.flush(ruby, this.as_raw(), options, &tags, &mute) });
    let Ok(flushed) = catch_unwind(flush) else {
        this.sampler.panicked("flush");
        return check_failure(ruby, &this).map(|()| data);
    };
    match flushed {
        Ok(flushed) => {
            data.fill(flushed);
            Ok(data)
        }
        Err(failure) => check_failure(ruby, &this).and(Err(errors::flush(ruby, failure))),
    }
}

fn is_running(this: Obj<RubySampler>) -> bool {
    this.sampler.is_running() && this.sampler.failure().is_none()
}

fn after_fork(ruby: &Ruby, this: Obj<RubySampler>) -> Result<(), Error> {
    // SAFETY: in a method of a forked child, on the main Ractor: others have no access to the object.
    let goes_on = unsafe { this.sampler.after_fork(MainRactor::new()) };
    goes_on.map_err(|reason| errors::error(ruby, format!("CPU time is not sampled in this child: {reason}")))
}

fn stats(ruby: &Ruby, this: Obj<RubySampler>) -> Result<RHash, Error> {
    let stats = this.sampler.statistics();
    let hash = ruby.hash_new();
    hash.aset(ruby.to_symbol("running"), is_running(this))?;
    hash.aset(ruby.to_symbol("period_nsecs"), stats.options.period.as_nanos() as u64)?;
    hash.aset(ruby.to_symbol("signal"), stats.options.signal)?;
    hash.aset(ruby.to_symbol("signal_taken"), stats.signal_taken)?;
    hash.aset(ruby.to_symbol("walker_failure"), walker_check::failure())?;
    hash.aset(ruby.to_symbol("failure"), this.sampler.failure())?;
    hash.aset(ruby.to_symbol("threads"), stats.threads)?;
    hash.aset(ruby.to_symbol("refused_timers"), stats.refused)?;
    hash.aset(ruby.to_symbol("samples"), stats.samples)?;
    hash.aset(ruby.to_symbol("signals"), stats.signals)?;
    hash.aset(ruby.to_symbol("stacks"), stats.stacks)?;
    hash.aset(ruby.to_symbol("lost_stacks"), stats.lost_stacks)?;
    hash.aset(ruby.to_symbol("bytes"), this.sampler.bytes())?;
    Ok(hash)
}
