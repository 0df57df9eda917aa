//! How much memory an object takes.

use super::heap::DataType;
use super::object::{Type, flags, type_of};
use super::{protect, threads};
use magnus::rb_sys::AsRawValue;
use magnus::value::ReprValue;
use magnus::{Error, Ruby};
use rb_sys::VALUE;

unsafe extern "C" {
    /// gc.c; exported by every Ruby from 3.1 to 4.0 but in no public header. Calls rb_bug for unknown types, and for
    /// T_DATA the `dsize` function of the extension that owns the object.
    fn rb_obj_memsize_of(object: VALUE) -> usize;
}

/// The size of a live object in bytes, as from `ObjectSpace.memsize_of`, if finding it takes only reads; None for an
/// extension's object.
///
/// # Safety
/// The GVL must be held and `object` be alive, or dead but intact, as in a hook of the GC before it is freed.
pub unsafe fn of_plain(object: VALUE) -> Option<usize> {
    // SAFETY: the object is intact, and so are its header and slot. For types that are not listed the function reads
    // the object and what it owns outside Ruby's heap.
    unsafe {
        match type_of(object) {
            Type::DATA => None,
            // The function would call rb_bug, or there is nothing to measure.
            Type::NONE | Type::NODE | Type::MOVED | Type::ZOMBIE => Some(slot_size(object)),
            _ => Some(rb_obj_memsize_of(object)),
        }
    }
}

/// Like [`of_plain`], but also None if it would take the VM's lock, where a garbage collection in another Ractor may
/// come first.
///
/// # Safety
/// The GVL must be held and `object` must be alive.
pub unsafe fn of_plain_at_once(object: VALUE) -> Option<usize> {
    /// `RUBY_FL_EXIVAR`: instance variables in a table of the VM's. Ruby 4.0 neither counts them nor has the flag.
    const EXIVAR: VALUE = 1 << 10;
    // SAFETY: the GVL is held, and the object is alive.
    unsafe { if cfg!(not(ruby_gte_4_0)) && flags(object) & EXIVAR != 0 { None } else { of_plain(object) } }
}

/// The size of an object as far as its slot tells: what else it owns counts for String and Array only. Only reads the
/// slot, which other threads may be changing.
///
/// # Safety
/// `object` must refer to a slot on Ruby's heap.
pub unsafe fn from_slot(object: VALUE) -> usize {
    // include/ruby/internal/core/rstring.h, rarray.h and fl_type.h; the same in every Ruby from 3.1 to 4.0.
    const FLAG: VALUE = 1 << 13;
    const SHARED: VALUE = 1 << 14;
    const STRING_CAPACITY: usize = 32;
    const ARRAY_CAPACITY: usize = 24;
    // SAFETY: every slot has five words at least, the first of which are its flags. Nobody else's write is torn: words
    // are written at once.
    let word = |offset: usize| unsafe { ((object as usize + offset) as *const usize).read_volatile() };
    let before = word(0) as VALUE;
    let owned = match (Type::of_flags(before), before & FLAG != 0) {
        (_, _) if before & SHARED != 0 => 0,
        (Type::STRING, true) => word(STRING_CAPACITY),
        (Type::ARRAY, false) => word(ARRAY_CAPACITY).saturating_mul(size_of::<VALUE>()),
        _ => 0,
    };
    // If another thread has just changed where the contents are, the words mean something else.
    let certain = word(0) as VALUE == before && owned < 1 << 40;
    // SAFETY: as required of the caller.
    (unsafe { slot_size(object) }) + if certain { owned } else { 0 }
}

/// The size of any live object in bytes; None if an extension fails to return it. An extension's code may allocate,
/// switch threads or raise, so the collector's state must not be borrowed.
///
/// # Errors
/// What the extension throws, or what a signal or another thread raises meanwhile.
///
/// # Safety
/// The GVL must be held and `object` must be alive.
pub unsafe fn of_any(ruby: &Ruby, object: VALUE) -> Result<Option<usize>, Error> {
    // SAFETY: the GVL is held. The object was alive when this function was called, and stays alive on its stack.
    let ask = || unsafe { ask(object) };
    let first = match ask() {
        Ok(size) => return Ok(Some(size)),
        Err(error) => own(ruby, error)?,
    };
    // An exception from a Timeout or Thread#raise looks like the extension's own, but does not come twice.
    // Thread.handle_interrupt could hold it back, but is a method call, at whose end signal handlers run.
    let Err(error) = ask() else { return Err(first) };
    let second = own(ruby, error)?;
    if class_of(&second) == class_of(&first) {
        return Ok(None);
    }
    // One of the two is the extension's.
    match ask() {
        Err(error) if class_of(&error) == class_of(&first) => Err(second),
        Err(error) => own(ruby, error).and(Err(first)),
        Ok(_) => Err(first),
    }
}

/// `error` if it may be an extension's; otherwise fails with it.
fn own(ruby: &Ruby, error: Error) -> Result<Error, Error> {
    if error.is_kind_of(ruby.exception_standard_error()) { Ok(error) } else { Err(error) }
}

fn class_of(error: &Error) -> Option<VALUE> {
    error.value().map(|exception| exception.class().as_raw())
}

/// # Safety
/// As for [`of_any`].
unsafe fn ask(object: VALUE) -> Result<usize, Error> {
    // SAFETY: the object is alive, and stays so: from here on it is on this thread's stack.
    protect(|| unsafe { of_data(object) })
}

/// The size of an extension's object in bytes, according to the extension, which may allocate, switch threads or raise.
/// Of a Thread without its VM stack, of which it reserves 1 MB and mostly uses little.
///
/// # Safety
/// The GVL must be held, and `object` be alive; the caller must be inside [`protect`].
pub unsafe fn of_data(object: VALUE) -> usize {
    // SAFETY: the object is alive, and a jump ends in `protect`. What has the type of a Thread is one.
    unsafe {
        let size = rb_obj_memsize_of(object);
        if DataType::of(object) != DataType::of(threads::current()) {
            return size;
        }
        // Not counted if the thread has had Fibers.
        size.checked_sub(threads::vm_stack_size(object)).unwrap_or(size)
    }
}

/// The size of the smallest heap slot in bytes: sizeof(RVALUE). Before variable-width slots it is the only size.
pub const SMALLEST_SLOT: usize = 40;

/// The size of the heap slot of `object`, in bytes.
///
/// # Safety
/// `object` must refer to a slot on Ruby's heap.
#[cfg(not(ruby_gte_3_2))]
pub unsafe fn slot_size(_object: VALUE) -> usize {
    SMALLEST_SLOT
}

/// The size of the heap slot of `object`, in bytes.
///
/// # Safety
/// `object` must refer to a slot on Ruby's heap.
#[cfg(ruby_gte_3_2)]
pub unsafe fn slot_size(object: VALUE) -> usize {
    unsafe extern "C" {
        /// gc.c; exported but in no public header.
        fn rb_gc_obj_slot_size(object: VALUE) -> usize;
    }
    // SAFETY: it reads the header of the page with the slot.
    unsafe { rb_gc_obj_slot_size(object) }
}
