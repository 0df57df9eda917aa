//! The native part of `MemprofilerPprof::MemoryWatch`.

use super::collector::RubyCollector;
use super::errors;
use crate::collector::watch;
use magnus::rb_sys::AsRawValue;
use magnus::typed_data::Obj;
use magnus::{Error, Module, Object, RModule, Ruby, function};
use memprofiler_core::watch::Level;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// An alarm: the reason, bytes used, the limit in bytes, bytes per second of growth, whether this process is at fault,
/// and whether this is the last alarm.
type Alarm = (&'static str, u64, Option<u64>, f64, bool, bool);

/// Defines the functions.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("MemoryWatch", ruby.class_object())?;
    class.define_singleton_method("begin", function!(begin, 4))?;
    class.define_singleton_method("wait", function!(wait, 2))?;
    class.define_singleton_method("queue", function!(watch::queue, 1))?;
    class.define_singleton_method("done", function!(done, 0))?;
    class.define_singleton_method("end", function!(watch::end, 0))
}

/// Watches for a part of the limit, or else for so many bytes. Returns the number of the watcher; nil if there is
/// nothing to watch.
fn begin(
    ruby: &Ruby,
    this: Obj<RubyCollector>,
    part: Option<f64>,
    bytes: Option<u64>,
    path: PathBuf,
) -> Result<Option<u64>, Error> {
    let level = part.map_or(Level::Resident(bytes.unwrap_or(u64::MAX)), Level::Part);
    keep(ruby, this);
    // SAFETY: the collector is in a box of its own until the GC frees its object, which it does not do.
    unsafe { watch::begin(ptr::from_ref(&this.collector), level, path) }
        .map_err(|error| errors::error(ruby, error.to_string()))
}

/// Keeps a collector alive for as long as the process, since the thread that watches does not know when it is gone.
/// There is hardly more than one.
fn keep(ruby: &Ruby, this: Obj<RubyCollector>) {
    /// The last one.
    static KEPT: AtomicU64 = AtomicU64::new(0);
    if KEPT.swap(this.as_raw(), Ordering::Relaxed) != this.as_raw() {
        ruby.gc_register_mark_object(this);
    }
}

/// The next alarm; nil when watching has ended.
fn wait(number: u64, path: PathBuf) -> Result<Option<Alarm>, Error> {
    Ok(watch::wait(number, path)?.map(|alarm| {
        let (used, limit) = alarm.used();
        (alarm.reason.name(), used, limit, alarm.growth, alarm.own, alarm.last)
    }))
}

/// The file that was written without the GVL meanwhile; nil if there is none.
fn done() -> Option<PathBuf> {
    watch::done()
}
