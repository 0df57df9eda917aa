//! Methods that belong to a single object of the program: those of its singleton class, and of modules that it was
//! extended with. Their method entries refer to the object.

use super::frames::KNOWN;
use super::layout;
use super::object::{Type, is_heap, read, type_of};
use rb_sys::VALUE;

/// Whether the method of `entry` belongs to a single object that is neither a class nor a module. Who keeps such an
/// entry alive also keeps the object, and all that it refers to.
///
/// # Safety
/// `entry` must be a live method entry, and the layout be known.
#[inline]
pub unsafe fn has_method(entry: VALUE) -> bool {
    // SAFETY: a live method entry has these words at the layout's offsets, and keeps the classes alive.
    unsafe {
        let owner = word(entry, layout::ME_OWNER);
        let defined = word(entry, layout::ME_DEFINED_CLASS);
        is_of_object(owner) || (defined != owner && is_of_object(includer(defined)))
    }
}

/// Whether `class` is the singleton class of an object that is neither a class nor a module.
///
/// # Safety
/// `class` must be a live class or module, or no reference.
#[inline]
unsafe fn is_of_object(class: VALUE) -> bool {
    // SAFETY: the class is alive, and keeps its instance alive. While it is being made it may have none yet.
    unsafe {
        is_singleton(class)
            && match KNOWN.classext_attached {
                0 => !is_metaclass(class),
                offset => {
                    let instance = extension(class, offset);
                    is_heap(instance) && !matches!(type_of(instance), Type::CLASS | Type::MODULE)
                }
            }
    }
}

/// As `RCLASS_SINGLETON_P` of internal/class.h.
///
/// # Safety
/// As for [`is_of_object`].
#[inline]
unsafe fn is_singleton(class: VALUE) -> bool {
    // SAFETY: what is a reference is alive.
    is_heap(class) && unsafe { type_of(class) == Type::CLASS && word(class, 0) & KNOWN.fl_singleton as VALUE != 0 }
}

/// Up to Ruby 3.2, where the instance is hard to find: whether a singleton class is that of a class or module. Only these
/// have a superclass that is a singleton class, or `Module` or `Class`.
///
/// # Safety
/// As for [`is_of_object`].
unsafe fn is_metaclass(class: VALUE) -> bool {
    // SAFETY: a class keeps its superclass alive. The last one has none. The constants never change.
    unsafe {
        let mut class = word(class, KNOWN.class_super);
        while is_heap(class) && type_of(class) == Type::ICLASS {
            class = word(class, KNOWN.class_super);
        }
        is_singleton(class) || class == rb_sys::rb_cModule || class == rb_sys::rb_cClass
    }
}

/// The class that has included a module, if `class` stands for that, and the GC marks it; 0 otherwise.
///
/// # Safety
/// As for [`is_of_object`].
#[inline]
unsafe fn includer(class: VALUE) -> VALUE {
    // SAFETY: what is a reference is alive, and has this word at the layout's offset.
    unsafe {
        if KNOWN.classext_includer == 0 || !is_heap(class) || type_of(class) != Type::ICLASS {
            return 0;
        }
        extension(class, KNOWN.classext_includer)
    }
}

/// The word at `offset` of the extension of a class, which from Ruby 3.2 on is in the class itself.
///
/// # Safety
/// `class` must be a live class or module, of Ruby 3.2 or newer.
#[inline]
unsafe fn extension(class: VALUE, offset: usize) -> VALUE {
    // SAFETY: as required of the caller.
    unsafe { word(class, KNOWN.class_ext + offset) }
}

/// # Safety
/// `object` must be alive, and have a word at `offset`.
#[inline]
unsafe fn word(object: VALUE, offset: usize) -> VALUE {
    // SAFETY: as required of the caller.
    unsafe { read(object as *const u8, offset) as VALUE }
}
