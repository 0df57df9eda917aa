//! How much memory an object takes.

use super::object::{Type, flags, type_of};
use super::protect;
use magnus::rb_sys::AsRawValue;
use magnus::value::ReprValue;
use magnus::{Error, Ruby};
use rb_sys::VALUE;

unsafe extern "C" {
    /// gc.c; exported by every Ruby from 3.1 to 4.0 but in no public header. Calls rb_bug for types that it does not
    /// know, and the `dsize` function of the extension that owns the object for T_DATA.
    fn rb_obj_memsize_of(object: VALUE) -> usize;
}

/// The bytes of a live object, as `ObjectSpace.memsize_of` says, if that takes no more than reading; None for an
/// object of an extension.
///
/// # Safety
/// The GVL must be held and `object` be alive, or dead but intact, as in a hook of the GC before it is freed.
pub unsafe fn of_plain(object: VALUE) -> Option<usize> {
    // SAFETY: the object is intact, and so is its header.
    match unsafe { type_of(object) } {
        Type::DATA => None,
        // rb_bug, or nothing to measure.
        Type::NONE | Type::NODE | Type::MOVED | Type::ZOMBIE => Some(slot_size(object)),
        // SAFETY: for all other types the function reads the object and what it owns outside Ruby's heap.
        _ => Some(unsafe { rb_obj_memsize_of(object) }),
    }
}

/// As [`of_plain`]; None also if it takes the VM's lock, at which a garbage collection in another Ractor may go first.
///
/// # Safety
/// The GVL must be held and `object` be alive.
pub unsafe fn of_plain_at_once(object: VALUE) -> Option<usize> {
    /// `RUBY_FL_EXIVAR`: instance variables in a table of the VM's. Ruby 4.0 does not count them, nor has the flag.
    const EXIVAR: VALUE = 1 << 10;
    // SAFETY: the GVL is held, and the object is alive.
    unsafe { if cfg!(not(ruby_gte_4_0)) && flags(object) & EXIVAR != 0 { None } else { of_plain(object) } }
}

/// The bytes of a live object of any kind; None if an extension cannot tell. An extension's code may allocate, switch
/// threads or raise: hold no borrow of the collector's state.
///
/// # Errors
/// What the extension throws, and what has come from elsewhere meanwhile: from a signal or from another thread.
///
/// # Safety
/// The GVL must be held and `object` be alive.
pub unsafe fn of_any(ruby: &Ruby, object: VALUE) -> Result<Option<usize>, Error> {
    // SAFETY: the GVL is held. The object was alive when this function was called, and on its stack it stays so.
    let ask = || unsafe { ask(object) };
    let first = match ask() {
        Ok(size) => return Ok(Some(size)),
        Err(error) => own(ruby, error)?,
    };
    // What a Timeout or Thread#raise brings here looks like an error of the extension's, but does not come twice.
    // Thread.handle_interrupt could hold it back, and would be a method call, at whose end signal handlers run.
    let Err(error) = ask() else { return Err(first) };
    let second = own(ruby, error)?;
    if class_of(&second) == class_of(&first) {
        return Ok(None);
    }
    // One of them is the extension's.
    match ask() {
        Err(error) if class_of(&error) == class_of(&first) => Err(second),
        Err(error) => own(ruby, error).and(Err(first)),
        Ok(_) => Err(first),
    }
}

/// `error` if it may be an extension's; what others throw is returned as an error of this function's.
fn own(ruby: &Ruby, error: Error) -> Result<Error, Error> {
    if error.is_kind_of(ruby.exception_standard_error()) { Ok(error) } else { Err(error) }
}

fn class_of(error: &Error) -> Option<VALUE> {
    error.value().map(|exception| exception.class().as_raw())
}

/// # Safety
/// As for [`of_any`].
unsafe fn ask(object: VALUE) -> Result<usize, Error> {
    // SAFETY: the object is alive, and on this thread's stack from here on, so that it stays so.
    protect(|| unsafe { rb_obj_memsize_of(object) })
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
