//! What the gem asks of the garbage collector.

use magnus::rb_sys::AsRawValue;
use magnus::{Ruby, Value};
use rb_sys::VALUE;

/// How many garbage collections have run. Does not allocate; safe in hooks.
#[inline]
pub fn count() -> u32 {
    // SAFETY: reads a counter.
    (unsafe { rb_sys::rb_gc_count() }) as u32
}

/// Whether dead objects wait to be swept: they are still in the live set, and reading them is unsafe.
pub fn sweeping(ruby: &Ruby) -> bool {
    let key = ruby.to_symbol("state").as_raw();
    // SAFETY: the GVL is held, as `ruby` shows; the key is one that every Ruby from 3.1 knows.
    let state = unsafe { rb_sys::rb_gc_latest_gc_info(key) };
    state == ruby.to_symbol("sweeping").as_raw()
}

/// Finishes a lazy sweep, so that each dead object has passed the FREEOBJ hook.
pub fn settle(ruby: &Ruby) {
    if !sweeping(ruby) {
        return;
    }
    // Disabling the GC finishes the cycle under way.
    if !ruby.gc_disable() {
        ruby.gc_enable();
    }
}

/// Tells the GC that `holder` now refers to `value`. Does not allocate; safe in a NEWOBJ hook.
///
/// # Safety
/// GVL held; `holder` alive; `value` alive or not a heap reference.
#[inline]
pub unsafe fn write_barrier(holder: VALUE, value: VALUE) {
    if super::object::is_heap(value) {
        // SAFETY: the caller's promise.
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
        // SAFETY: the caller's promise.
        unsafe { rb_sys::rb_gc_mark(value) };
    }
}

/// Where the object that was at `value` lies now.
///
/// # Safety
/// Only in a compact function; `value` was alive when compaction began.
pub unsafe fn location(value: VALUE) -> VALUE {
    // SAFETY: the caller's promise.
    unsafe { rb_sys::rb_gc_location(value) }
}
