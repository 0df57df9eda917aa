//! `MemprofilerPprof::Collector`.

use super::errors::{self, Wrong, argument};
use super::flush_options::{check_flush_options, flush_options};
use super::memory::memory_data;
use super::options;
use super::profile_data::ProfileData;
use super::retainers::retainers_data;
use super::settle_class;
use crate::collector::mute::Mute;
use crate::collector::{Collector, FlushFailure, FlushOptions, Flushed, Only, Phase, walker_check};
use crate::cpu::discovery;
use crate::vm::{activity, machine_stack, protect, quirks::Quirks, ractor, thread_events, threads};
use magnus::scan_args::{get_kwargs, scan_args};
use magnus::typed_data::Obj;
use magnus::value::Opaque;
use magnus::{DataTypeFunctions, Error, RHash, RModule, Ruby, Symbol, TypedData, Value, function, method, prelude::*};
use memprofiler_core::readers::Readers;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
    class.define_method("flush", method!(flush, -1))?;
    class.define_method("peak_profile", method!(peak_profile, -1))?;
    class.define_private_method("flush_for", method!(flush_for, -1))?;
    class.define_private_method("retainers_data", method!(retainers_data, 5))?;
    class.define_private_method("memory_data", method!(memory_data, 1))?;
    class.define_private_method("add_reader", method!(add_reader, 0))?;
    class.define_private_method("remove_reader", method!(remove_reader, 1))?;
    class.define_method("only", method!(only, 0))?;
    class.define_singleton_method("check_flush_options", function!(check_flush_options, -1))?;
    class.define_method("running?", method!(is_running, 0))?;
    class.define_method("live_heap_samples_count", method!(live_heap_samples_count, 0))?;
    class.define_method("last_mark_nsecs", method!(last_mark_nsecs, 0))?;
    class.define_method("mark_table_size", method!(mark_table_size, 0))?;
    class.define_method("stats", method!(stats, 0))?;
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
    check_ractors(ruby, true)?;
    walker_check::run(ruby)?;
    // SAFETY: on the main Ractor, as just checked.
    unsafe { this.collector.start(ruby, this.as_value(), only) }?;
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
        true => Only::this_fiber().ok_or_else(|| {
            errors::error(ruby, "fibers cannot be distinguished on this Ruby: use only: :thread".to_owned())
        }),
    }
}

fn only(ruby: &Ruby, this: Obj<RubyCollector>) -> Option<Symbol> {
    this.collector.only().name().map(|name| ruby.to_symbol(name))
}

/// The number of a new reader, for `Reader`.
fn add_reader(ruby: &Ruby, this: Obj<RubyCollector>) -> Result<usize, Error> {
    this.collector
        .add_reader()
        .ok_or_else(|| errors::error(ruby, format!("a collector can have {} readers: close one first", Readers::MOST)))
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

/// Whether this is the main Ractor.
pub fn on_main_ractor(ruby: &Ruby) -> Result<bool, Error> {
    let Ok(ractor) = ruby.class_object().const_get::<_, Value>("Ractor") else { return Ok(true) };
    let (current, main): (Value, Value) = (ractor.funcall("current", ())?, ractor.funcall("main", ())?);
    current.equal(main)
}

/// Fails if Ractors prevent starting something, which `traces` allocations or does not; otherwise watches for them, and
/// for threads, from now on.
pub fn check_ractors(ruby: &Ruby, traces: bool) -> Result<(), Error> {
    if !on_main_ractor(ruby)? {
        return Err(errors::ractor(ruby, "a collector can only be started on the main Ractor"));
    }
    // SAFETY: on the main Ractor, as just checked.
    unsafe { ractor::mark_main() }?;
    thread_events::watch();
    activity::prepare();
    discovery::prepare();
    if ractor::count(ruby)? == 1 {
        return Ok(());
    }
    // Those that already exist.
    ractor::note_others();
    if traces && Quirks::current(ruby)?.forbid_ractors() {
        let message = "this Ruby may crash when allocations are traced beside another Ractor, and one is running: \
                       start the profiler when it has ended, or use Ruby 3.1.4, 3.2.3, 3.3 or 4.0";
        return Err(errors::ractor(ruby, message));
    }
    Ok(())
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

fn flush(ruby: &Ruby, this: Obj<RubyCollector>, arguments: &[Value]) -> Result<Obj<ProfileData>, Error> {
    machine_stack::overwrite_remains();
    take_profile(ruby, this, Some(0), arguments)
}

/// A profile of the live set when the process had the most memory; None if that is not known.
fn peak_profile(ruby: &Ruby, this: Obj<RubyCollector>, arguments: &[Value]) -> Result<Option<Obj<ProfileData>>, Error> {
    let options = flush_options(ruby, keywords(arguments)?)?;
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
    let options = FlushOptions { reader, ..flush_options(ruby, keywords(arguments)?)? };
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
    let mutex = this.flushing.get().ok_or_else(|| errors::not_started(ruby))?;
    // Not muted yet: a fiber scheduler may never resume what waits here, and the mute would last forever.
    let _locked = threads::Locked::new(ruby.get_inner(mutex))?;
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

fn is_running(this: Obj<RubyCollector>) -> bool {
    this.collector.phase() == Phase::Running && this.collector.failure().is_none()
}

fn live_heap_samples_count(this: Obj<RubyCollector>) -> usize {
    this.collector.statistics().live_samples
}

fn last_mark_nsecs(this: Obj<RubyCollector>) -> u64 {
    this.collector.statistics().last_mark_nsecs
}

fn mark_table_size(this: Obj<RubyCollector>) -> usize {
    this.collector.statistics().mark_table_size
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

fn stats(ruby: &Ruby, this: Obj<RubyCollector>) -> Result<RHash, Error> {
    let stats = this.collector.statistics();
    let hash = ruby.hash_new();
    hash.aset(ruby.to_symbol("running"), is_running(this))?;
    hash.aset(ruby.to_symbol("bt_method"), ruby.to_symbol(stats.bt_method.name()))?;
    hash.aset(ruby.to_symbol("liveness"), ruby.to_symbol(stats.liveness.name()))?;
    hash.aset(ruby.to_symbol("sampling"), ruby.to_symbol(stats.sampling.name()))?;
    hash.aset(ruby.to_symbol("sampling_reason"), stats.sampling.reason)?;
    hash.aset(ruby.to_symbol("windows"), stats.windows.opened)?;
    hash.aset(ruby.to_symbol("window_coverage"), stats.windows.coverage)?;
    hash.aset(ruby.to_symbol("late_windows"), stats.windows.late)?;
    hash.aset(ruby.to_symbol("hook_cost_nsecs"), stats.windows.hook_cost)?;
    hash.aset(ruby.to_symbol("walker_failure"), walker_check::failure())?;
    hash.aset(ruby.to_symbol("disarmed"), stats.disarmed)?;
    hash.aset(ruby.to_symbol("failure"), this.collector.failure())?;
    hash.aset(ruby.to_symbol("effective_sample_rate"), stats.effective_sample_rate)?;
    hash.aset(ruby.to_symbol("live_samples"), stats.live_samples)?;
    hash.aset(ruby.to_symbol("samples"), stats.counters.samples)?;
    hash.aset(ruby.to_symbol("thinned_samples"), stats.thinned)?;
    hash.aset(ruby.to_symbol("halvings"), stats.halvings)?;
    hash.aset(ruby.to_symbol("missed_deaths"), stats.counters.missed_deaths)?;
    hash.aset(ruby.to_symbol("stack_overflows"), stats.counters.stack_overflows)?;
    hash.aset(ruby.to_symbol("allocation_failures"), stats.counters.allocation_failures)?;
    hash.aset(ruby.to_symbol("missed_collections"), stats.counters.missed_collections)?;
    hash.aset(ruby.to_symbol("contended"), stats.contended)?;
    hash.aset(ruby.to_symbol("stack_ends"), stats.stack_ends)?;
    hash.aset(ruby.to_symbol("flushes"), stats.counters.flushes)?;
    hash.aset(ruby.to_symbol("unreported_entries"), stats.unreported_entries)?;
    hash.aset(ruby.to_symbol("stack_nodes"), stats.stack_nodes)?;
    hash.aset(ruby.to_symbol("functions"), stats.functions)?;
    hash.aset(ruby.to_symbol("pinned_functions"), stats.pinned_functions)?;
    hash.aset(ruby.to_symbol("pinned_classes"), stats.pinned_classes)?;
    hash.aset(ruby.to_symbol("namings"), stats.counters.namings)?;
    hash.aset(ruby.to_symbol("class_overflows"), stats.counters.class_overflows)?;
    hash.aset(ruby.to_symbol("label_sets"), stats.label_sets)?;
    hash.aset(ruby.to_symbol("label_overflows"), stats.label_overflows)?;
    hash.aset(ruby.to_symbol("exemplars"), stats.exemplars)?;
    hash.aset(ruby.to_symbol("live_set_bytes"), stats.live_set_bytes)?;
    hash.aset(ruby.to_symbol("stack_bytes"), stats.stack_bytes)?;
    hash.aset(ruby.to_symbol("name_bytes"), stats.name_bytes)?;
    hash.aset(ruby.to_symbol("tally_bytes"), stats.tally_bytes)?;
    hash.aset(ruby.to_symbol("bytes"), stats.bytes)?;
    hash.aset(ruby.to_symbol("peak_rss_bytes"), stats.peak_rss_bytes)?;
    hash.aset(ruby.to_symbol("tracked_peak_rss_bytes"), stats.tracked_peak_rss_bytes)?;
    Ok(hash)
}
