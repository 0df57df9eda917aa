//! Reads words of Ruby objects, and the header that they all have.

use rb_sys::VALUE;

pub use ruby_layout::object::{Type, is_heap};

/// The first two words of every object on Ruby's heap.
#[repr(C)]
struct Header {
    flags: VALUE,
    class: VALUE,
}

/// The flags word of `object`.
///
/// # Safety
/// `object` must refer to a slot on Ruby's heap; the GVL must be held, or the GC must be running this very code.
#[inline]
pub unsafe fn flags(object: VALUE) -> VALUE {
    // SAFETY: every slot begins with a header, even a free one.
    unsafe { (*(object as *const Header)).flags }
}

/// The class word of `object`: its class or singleton class, or 0 for an object hidden from Ruby code.
///
/// # Safety
/// As for [`flags`].
#[inline]
pub unsafe fn class(object: VALUE) -> VALUE {
    // SAFETY: every slot begins with a header, even a free one.
    unsafe { (*(object as *const Header)).class }
}

/// Runs `body` while `object` is disguised as another type.
///
/// # Safety
/// As for [`flags`], and nobody else may look at the object meanwhile.
pub unsafe fn disguised<R>(object: VALUE, as_type: Type, body: impl FnOnce() -> R) -> R {
    let header = object as *mut Header;
    // SAFETY: every slot begins with a header, and nobody else looks at this one until it is restored.
    unsafe {
        let flags = (*header).flags;
        (*header).flags = flags & !0x1f | VALUE::from(as_type.0);
        let result = body();
        (*header).flags = flags;
        result
    }
}

/// The type of `object`.
///
/// # Safety
/// As for [`flags`].
#[inline]
pub unsafe fn type_of(object: VALUE) -> Type {
    // SAFETY: `object` refers to a slot, and the GVL is held or the GC runs this code: the requirements of `flags`.
    Type::of_flags(unsafe { flags(object) })
}

/// The word at `offset` bytes from `base`.
///
/// # Safety
/// The word must be readable and aligned.
#[inline]
pub unsafe fn read(base: *const u8, offset: usize) -> usize {
    // SAFETY: there is a readable, aligned word, as required of the caller.
    unsafe { base.add(offset).cast::<usize>().read() }
}
