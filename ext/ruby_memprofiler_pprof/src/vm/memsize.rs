//! How much memory an object takes.

use super::object::{Type, type_of};
use magnus::Error;
use magnus::rb_sys::protect;
use rb_sys::VALUE;

unsafe extern "C" {
    /// gc.c; exported by every Ruby from 3.1 to 4.0 but in no public header. Calls rb_bug for types that it does not
    /// know, and the `dsize` function of the extension that owns the object for T_DATA.
    fn rb_obj_memsize_of(object: VALUE) -> usize;
}

/// The bytes of a live object, as `ObjectSpace.memsize_of` says, if that takes no more than reading; None for an
/// object of an extension, see [`of_data`].
///
/// # Safety
/// The GVL must be held and `object` be alive, or be passed by the GC to a FREEOBJ hook.
pub unsafe fn of_plain(object: VALUE) -> Option<usize> {
    // SAFETY: the caller vouches for the object.
    match unsafe { type_of(object) } {
        Type::DATA => None,
        // rb_bug, or nothing to measure.
        Type::NONE | Type::NODE | Type::MOVED | Type::ZOMBIE => Some(slot_size(object)),
        // SAFETY: for all other types the function reads the object and what it owns outside Ruby's heap.
        _ => Some(unsafe { rb_obj_memsize_of(object) }),
    }
}

/// The bytes of a live object of an extension. The extension's code may allocate, switch threads or raise: hold no
/// borrow of the collector's state.
///
/// # Safety
/// The GVL must be held and `object` be alive.
pub unsafe fn of_data(object: VALUE) -> Result<usize, Error> {
    let mut size = 0;
    protect(|| {
        // SAFETY: the object is alive, and on this thread's stack from here on, so that it stays so.
        size = unsafe { rb_obj_memsize_of(object) };
        rb_sys::Qnil as VALUE
    })?;
    Ok(size)
}

/// The bytes of the smallest heap slot: sizeof(RVALUE). Before variable-width slots there is no other.
pub const SMALLEST_SLOT: usize = 40;

/// The bytes of the heap slot of `object`.
#[cfg(not(ruby_gte_3_2))]
pub fn slot_size(_object: VALUE) -> usize {
    SMALLEST_SLOT
}

/// The bytes of the heap slot of `object`.
#[cfg(ruby_gte_3_2)]
pub fn slot_size(object: VALUE) -> usize {
    unsafe extern "C" {
        /// gc.c; exported but in no public header.
        fn rb_gc_obj_slot_size(object: VALUE) -> usize;
    }
    // SAFETY: computed from the header of the page that the address lies in.
    unsafe { rb_gc_obj_slot_size(object) }
}
