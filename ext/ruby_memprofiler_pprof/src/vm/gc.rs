//! What the gem asks of the garbage collector.

use super::protect;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, Ruby, Value, prelude::*};
use rb_sys::VALUE;
use std::time::Duration;

/// How many garbage collections have run. Does not allocate; safe in hooks.
#[inline]
pub fn count() -> u32 {
    // SAFETY: reads a counter.
    (unsafe { rb_sys::rb_gc_count() }) as u32
}

/// How long all garbage collections took, as far as `GC.measure_total_time` was on. Checks interrupts.
pub fn total_time(ruby: &Ruby) -> Result<Duration, Error> {
    ruby.module_gc().funcall("total_time", ()).map(Duration::from_nanos)
}

/// Collects garbage. Runs finalizers, too.
pub fn start(ruby: &Ruby) -> Result<(), Error> {
    protect(|| ruby.gc_start())
}

/// The symbols by which the GC's state is asked for. The VM itself has made them of names in its code, which are kept for
/// good and do not move, so nothing needs to mark them.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    state: VALUE,
    sweeping: VALUE,
    marking: VALUE,
    major_by: VALUE,
}

impl Info {
    /// Makes the symbols, which may raise.
    pub fn new(ruby: &Ruby) -> Self {
        let symbol = |name| ruby.to_symbol(name).as_raw();
        let info = Self {
            state: symbol("state"),
            sweeping: symbol("sweeping"),
            marking: symbol("marking"),
            major_by: symbol("major_by"),
        };
        // The first call allocates, which a hook must not.
        info.is_marking();
        info
    }

    /// Whether dead objects wait to be swept: those that FREEOBJ has not told of yet, and whose contents may be gone.
    /// Safe in hooks.
    pub fn is_sweeping(&self) -> bool {
        latest(self.state) == self.sweeping
    }

    /// Whether a mark phase is under way.
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
        // Disabling the GC finishes the cycle under way.
        if !ruby.gc_disable() {
            ruby.gc_enable();
        }
    }
}

fn latest(key: VALUE) -> VALUE {
    // SAFETY: the keys are ones that every Ruby from 3.1 knows; asked for a single one, the function allocates nothing.
    unsafe { rb_sys::rb_gc_latest_gc_info(key) }
}

/// Tells the GC that `holder` now refers to `value`. Does not allocate; safe in a NEWOBJ hook.
///
/// # Safety
/// GVL held; `holder` alive; `value` alive or not a heap reference.
#[inline]
pub unsafe fn write_barrier(holder: VALUE, value: VALUE) {
    if super::object::is_heap(value) {
        // SAFETY: the GVL is held; both are alive, and `value` refers to the heap.
        unsafe { rb_sys::rb_gc_writebarrier(holder, value) };
    }
}

/// Tells the GC that `holder` now refers to `value`.
pub fn refer(holder: Value, value: Value) {
    // SAFETY: both are alive, as their types say.
    unsafe { write_barrier(holder.as_raw(), value.as_raw()) };
}

/// Marks and pins `value` if it is a heap reference.
///
/// # Safety
/// Only in a mark function.
pub unsafe fn mark(value: VALUE) {
    if super::object::is_heap(value) {
        // SAFETY: in a mark function; a reference to the heap.
        unsafe { rb_sys::rb_gc_mark(value) };
    }
}

/// Where the object that was at `value` lies now.
///
/// # Safety
/// Only in a compact function; `value` was alive when compaction began.
pub unsafe fn location(value: VALUE) -> VALUE {
    // SAFETY: in a compact function, where the slot of what was alive has it still, or says where it went.
    unsafe { rb_sys::rb_gc_location(value) }
}
