//! `MemprofilerPprof::Collector`.

use super::memory::memory_data;
use super::ractors::check_ractors;
use super::retainers::retainers_data;
use super::{errors, flush, options, settle_class, stats};
use crate::collector::{Collector, Only, Phase, walker_check, watch};
use crate::vm::{quirks::Quirks, ractor};
use magnus::scan_args::{get_kwargs, scan_args};
use magnus::typed_data::Obj;
use magnus::value::Opaque;
use magnus::{DataTypeFunctions, Error, RHash, RModule, Ruby, Symbol, TypedData, Value, method, prelude::*};
use memprofiler_core::readers::Readers;
use std::cell::Cell;

/// The Ruby object.
#[derive(Default, TypedData)]
#[magnus(class = "MemprofilerPprof::Collector", mark, compact, size, free_immediately, wb_protected)]
pub struct RubyCollector {
    pub(super) collector: Collector,
    /// A Thread::Mutex that allows one flush at a time.
    flushing: Cell<Option<Opaque<Value>>>,
}

impl RubyCollector {
    /// The Thread::Mutex that allows one flush at a time; None before `initialize`.
    pub(super) fn flushing(&self) -> Option<Opaque<Value>> {
        self.flushing.get()
    }
}

impl DataTypeFunctions for RubyCollector {
    fn mark(&self, marker: &magnus::gc::Marker) {
        // SAFETY: called by the GC as the mark function.
        unsafe { self.collector.mark() };
        if let Some(mutex) = self.flushing.get() {
            // SAFETY: the GC runs on a Ruby thread.
            marker.mark(unsafe { Ruby::get_unchecked() }.get_inner(mutex));
        }
    }

    fn compact(&self, _compactor: &magnus::gc::Compactor) {
        // SAFETY: called by the GC as the compact function. What `mark` marked is pinned.
        unsafe { self.collector.compact() };
    }

    fn size(&self) -> usize {
        self.collector.bytes()
    }

    /// Frees it, unless it has hooks, or a thread reads it. The VM frees such a collector only at its end: threads or
    /// jobs have added hooks again after it removed all, and 3.3 calls them for what it frees after this.
    fn free(self: Box<Self>) {
        if self.collector.phase() != Phase::Idle || watch::reads(&self.collector) {
            Box::leak(self);
        }
    }
}

/// Defines the class.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("Collector", ruby.class_object())?;
    class.define_alloc_func::<RubyCollector>();
    settle_class::<RubyCollector>(ruby);
    class.define_method("initialize", method!(initialize, -1))?;
    class.define_private_method("initialize_copy", method!(initialize_copy, 1))?;
    class.define_method("start", method!(start, -1))?;
    class.define_method("stop", method!(stop, 0))?;
    class.define_alias("start!", "start")?;
    class.define_alias("stop!", "stop")?;
    flush::init(class)?;
    class.define_private_method("retainers_data", method!(retainers_data, 5))?;
    class.define_private_method("memory_data", method!(memory_data, 1))?;
    class.define_private_method("add_reader", method!(add_reader, 0))?;
    class.define_private_method("remove_reader", method!(remove_reader, 1))?;
    class.define_method("only", method!(only, 0))?;
    class.define_method("running?", method!(is_running, 0))?;
    stats::init(class)?;
    class.define_method("after_fork", method!(after_fork, 0))?;
    class.define_method("before_ractor", method!(before_ractor, 0))?;
    class.define_private_method("sampling_in_services", method!(sampling_in_services, 0))?;
    class.define_private_method("get_option", method!(get_option, 1))?;
    class.define_private_method("set_option", method!(set_option, 2))?;
    class.const_set("OPTIONS", option_names(ruby)?)
}

fn option_names(ruby: &Ruby) -> Result<Value, Error> {
    let names = ruby.ary_from_iter(options::NAMES.iter().map(|name| ruby.to_symbol(name)));
    names.freeze();
    Ok(names.as_value())
}

fn initialize(ruby: &Ruby, this: Obj<RubyCollector>, arguments: &[Value]) -> Result<(), Error> {
    let keywords = scan_args::<(), (), (), (), RHash, ()>(arguments)?.keywords;
    let mut options = this.collector.options();
    options::set_all(ruby, &mut options, keywords)?;
    this.collector.configure(options);
    let mutex: Value = ruby.class_object().const_get::<_, Value>("Mutex")?.funcall("new", ())?;
    this.flushing.set(Some(Opaque::from(mutex)));
    crate::vm::gc::refer(this.as_value(), mutex);
    Ok(())
}

fn initialize_copy(ruby: &Ruby, _this: Obj<RubyCollector>, _other: Value) -> Result<Value, Error> {
    Err(Error::new(ruby.exception_type_error(), "a MemprofilerPprof::Collector cannot be copied"))
}

fn start(ruby: &Ruby, this: Obj<RubyCollector>, arguments: &[Value]) -> Result<Obj<RubyCollector>, Error> {
    let only = match arguments {
        // Without arguments not even a Hash for them: it would be in the profile of a running collector.
        [] => Only::All,
        _ => whose(ruby, arguments)?,
    };
    check_failure(ruby, &this)?;
    if this.flushing.get().is_none() {
        return Err(errors::error(ruby, "the collector is not initialized: a subclass must call super".to_owned()));
    }
    let main = check_ractors(ruby, true)?;
    walker_check::run(ruby, main)?;
    this.collector.start(ruby, main, this.as_value(), only)?;
    Ok(this)
}

/// What the keyword `only` selects.
fn whose(ruby: &Ruby, arguments: &[Value]) -> Result<Only, Error> {
    let keywords = scan_args::<(), (), (), (), RHash, ()>(arguments)?.keywords;
    let keywords = get_kwargs::<_, (), (Option<Value>,), ()>(keywords, &[], &["only"])?;
    let (Some(value),) = keywords.optional else { return Ok(Only::All) };
    if value.is_nil() {
        return Ok(Only::All);
    }
    match options::choice(ruby, "only", value, &[("thread", false), ("fiber", true)])? {
        false => Ok(Only::this_thread()),
        true => Only::this_fiber()?.ok_or_else(|| {
            errors::error(ruby, "fibers cannot be distinguished on this Ruby: use only: :thread".to_owned())
        }),
    }
}

fn only(ruby: &Ruby, this: Obj<RubyCollector>) -> Option<Symbol> {
    this.collector.only().name().map(|name| ruby.to_symbol(name))
}

/// The number of a new reader, for `Reader`.
fn add_reader(ruby: &Ruby, this: Obj<RubyCollector>) -> Result<usize, Error> {
    this.collector.add_reader().ok_or_else(|| {
        // One of them is the collector itself.
        let most = Readers::MOST - 1;
        errors::error(ruby, format!("a collector can have {most} open readers: close one first"))
    })
}

fn remove_reader(this: Obj<RubyCollector>, number: usize) {
    this.collector.remove_reader(number);
}

fn stop(this: Obj<RubyCollector>) -> Result<Obj<RubyCollector>, Error> {
    this.collector.stop()?;
    Ok(this)
}

pub(super) fn check_failure(ruby: &Ruby, this: &RubyCollector) -> Result<(), Error> {
    match this.collector.failure() {
        None => Ok(()),
        Some(place) => Err(abandoned(ruby, this, place)),
    }
}

pub(super) fn abandoned(ruby: &Ruby, this: &RubyCollector, place: &'static str) -> Error {
    this.collector.abandon();
    errors::internal(ruby, place)
}

pub(super) fn is_running(this: Obj<RubyCollector>) -> bool {
    this.collector.phase() == Phase::Running && this.collector.failure().is_none()
}

/// Called before a Ractor is created, on Rubies that have no event for that or would crash.
fn before_ractor(ruby: &Ruby, this: Obj<RubyCollector>) -> Result<bool, Error> {
    ractor::note_others();
    let quirks = Quirks::current(ruby)?;
    let must_stop = quirks.forbid_ractors() && this.collector.phase() == Phase::Running;
    if must_stop {
        let reason = "a Ractor was created: this Ruby may crash if it traces allocations beside another Ractor";
        this.collector.disarm(reason)?;
    }
    if quirks.ractor_creation_crashes {
        this.collector.detach()?;
    }
    Ok(must_stop)
}

fn after_fork(this: Obj<RubyCollector>) {
    this.collector.after_fork();
}

fn get_option(ruby: &Ruby, this: Obj<RubyCollector>, name: Symbol) -> Result<Value, Error> {
    Ok(options::get(ruby, &this.collector.options(), &name.name()?))
}

fn set_option(ruby: &Ruby, this: Obj<RubyCollector>, name: Symbol, value: Value) -> Result<(), Error> {
    let mut options = this.collector.options();
    options::set(ruby, &mut options, &name.name()?, value)?;
    this.collector.configure(options);
    Ok(())
}

/// How a server with these options samples after its first minute, and why, for `memprofiler doctor`.
fn sampling_in_services(ruby: &Ruby, this: Obj<RubyCollector>) -> (Symbol, &'static str) {
    let choice = this.collector.sampling_in_services();
    (ruby.to_symbol(choice.name()), choice.reason)
}
