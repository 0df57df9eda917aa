//! Queries to the garbage collector, and requests.

use super::mark_bits::active_collector;
use super::protect;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, Ruby, Value, prelude::*};
use rb_sys::VALUE;
use std::ffi::{CStr, c_long};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The number of garbage collections so far. Does not allocate; safe in hooks.
#[inline]
pub fn count() -> u32 {
    // SAFETY: reads a counter.
    (unsafe { rb_sys::rb_gc_count() }) as u32
}

/// Whether the garbage collector can be asked for its state in a signal handler.
static ANSWERS_HANDLERS: AtomicBool = AtomicBool::new(false);

/// Prepares [`count_unless_marking`], but not for another garbage collector than Ruby's own (from Ruby 3.4 on there can
/// be one): that may look up symbols when it is asked, which takes a lock.
///
/// # Errors
/// What Ruby raises.
pub fn prepare_marking(ruby: &Ruby) -> Result<(), Error> {
    if active_collector().is_none_or(|name| name == c"default") {
        Info::get(ruby)?;
        ANSWERS_HANDLERS.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// The number of garbage collections so far; None while one marks, in steps or at once, and if that is not
/// [prepared](prepare_marking). Safe in signal handlers.
pub fn count_unless_marking() -> Option<u32> {
    let info = Info::known().filter(|_| ANSWERS_HANDLERS.load(Ordering::Relaxed))?;
    (!info.is_marking()).then(count)
}

/// Whether the garbage collector is at work. Safe on any thread.
pub fn is_running() -> bool {
    // SAFETY: reads a variable of the VM.
    (unsafe { rb_sys::rb_during_gc() }) != 0
}

/// The VM's count of the objects allocated so far, in which an object that moves is another one; from Ruby 4.0 on it is
/// a little late. Does not allocate; safe in hooks once it was called outside. Only for Ruby's own garbage collector,
/// which mark bits need as well: another one (from Ruby 3.4 on there can be) may not know the key, and raise.
pub fn allocated() -> u64 {
    static KEY: OnceLock<VALUE> = OnceLock::new();
    statistic(&KEY, c"total_allocated_objects")
}

/// How often objects were moved so far. As [`allocated`].
pub fn compactions() -> u64 {
    static KEY: OnceLock<VALUE> = OnceLock::new();
    statistic(&KEY, c"compact_count")
}

fn statistic(key: &OnceLock<VALUE>, name: &CStr) -> u64 {
    // SAFETY: a string of that length. The VM itself has made this symbol, see `Info`.
    let intern = || unsafe { rb_sys::rb_id2sym(rb_sys::rb_intern2(name.as_ptr(), name.count_bytes() as c_long)) };
    let key = *key.get_or_init(intern);
    // SAFETY: Ruby's own collector has known these keys since before 3.1, so this does not raise; asked for a single
    // one, the function allocates nothing.
    (unsafe { rb_sys::rb_gc_stat(key) }) as u64
}

/// The total time of all garbage collections, as far as `GC.measure_total_time` was on. Checks interrupts.
pub fn total_time(ruby: &Ruby) -> Result<Duration, Error> {
    ruby.module_gc().funcall("total_time", ()).map(Duration::from_nanos)
}

/// How many slots of the heap have objects, dead or alive. Runs Ruby code.
pub fn live_slots(ruby: &Ruby) -> Result<u64, Error> {
    ruby.module_gc().funcall("stat", (ruby.to_symbol("heap_live_slots"),))
}

/// Whether each major collection compacts the heap. Runs Ruby code.
pub fn compacts_by_itself(ruby: &Ruby) -> Result<bool, Error> {
    let gc = ruby.module_gc();
    // Some systems cannot.
    if gc.respond_to("auto_compact", false)? { gc.funcall("auto_compact", ()) } else { Ok(false) }
}

/// Collects garbage. Runs finalizers, too.
pub fn start(ruby: &Ruby) -> Result<(), Error> {
    protect(|| ruby.gc_start())
}

/// The symbols for querying the GC's state. The VM itself has made them from names in its code, which are kept forever
/// and do not move, so nothing needs to mark them.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    state: VALUE,
    sweeping: VALUE,
    marking: VALUE,
    major_by: VALUE,
}

static INFO: OnceLock<Info> = OnceLock::new();

impl Info {
    /// The symbols, which the first call creates; that may start a collection.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn get(ruby: &Ruby) -> Result<&'static Self, Error> {
        if let Some(info) = Self::known() {
            return Ok(info);
        }
        let info = protect(|| Self::new(ruby))?;
        Ok(INFO.get_or_init(|| info))
    }

    /// The symbols, once [`get`](Self::get) has created them. Safe in hooks, in signal handlers and on any thread.
    pub fn known() -> Option<&'static Self> {
        INFO.get()
    }

    fn new(ruby: &Ruby) -> Self {
        let symbol = |name| ruby.to_symbol(name).as_raw();
        let info = Self {
            state: symbol("state"),
            sweeping: symbol("sweeping"),
            marking: symbol("marking"),
            major_by: symbol("major_by"),
        };
        // The first call allocates, which a hook must not do.
        info.is_marking();
        info
    }

    /// Whether dead objects wait to be swept: FREEOBJ has not reported them yet, and their contents may be gone. Safe
    /// in hooks, and on any thread.
    pub fn is_sweeping(&self) -> bool {
        latest(self.state) == self.sweeping
    }

    /// Whether a mark phase is under way. Safe in hooks, and on any thread.
    pub fn is_marking(&self) -> bool {
        latest(self.state) == self.marking
    }

    /// Whether the latest collection was a major one. Safe in hooks.
    pub fn is_major(&self) -> bool {
        latest(self.major_by) != rb_sys::Qnil as VALUE
    }

    /// Finishes a lazy sweep, so that each dead object has passed the FREEOBJ hook.
    pub fn settle(&self, ruby: &Ruby) {
        if !self.is_sweeping() {
            return;
        }
        // Disabling the GC finishes the current cycle.
        if !ruby.gc_disable() {
            ruby.gc_enable();
        }
    }
}

fn latest(key: VALUE) -> VALUE {
    // SAFETY: every Ruby from 3.1 on knows the keys; asked for a single one, the function allocates nothing.
    unsafe { rb_sys::rb_gc_latest_gc_info(key) }
}

/// Announces to the GC that `holder` now refers to `value`. Does not allocate; safe in a NEWOBJ hook.
///
/// # Safety
/// The GVL must be held, or a NEWOBJ hook be running; `holder` must be alive, and `value` alive or not a heap
/// reference.
#[inline]
pub unsafe fn write_barrier(holder: VALUE, value: VALUE) {
    if super::object::is_heap(value) {
        // SAFETY: the GVL is held, or this is a NEWOBJ hook; both are alive, and `value` refers to the heap.
        unsafe { rb_sys::rb_gc_writebarrier(holder, value) };
    }
}

/// Announces to the GC that `holder` now refers to `value`.
pub fn refer(holder: Value, value: Value) {
    // SAFETY: both are alive, as their types guarantee.
    unsafe { write_barrier(holder.as_raw(), value.as_raw()) };
}

/// Marks and pins `value` if it is a heap reference.
///
/// # Safety
/// Must only be called in a mark function.
pub unsafe fn mark(value: VALUE) {
    if super::object::is_heap(value) {
        // SAFETY: in a mark function; a reference to the heap.
        unsafe { rb_sys::rb_gc_mark(value) };
    }
}

/// The current address of the object that was at `value`.
///
/// # Safety
/// Must only be called in a compact function; `value` must have been alive when compaction began.
pub unsafe fn location(value: VALUE) -> VALUE {
    // SAFETY: in a compact function, where the slot of an object that was alive contains it, or its new address.
    unsafe { rb_sys::rb_gc_location(value) }
}
