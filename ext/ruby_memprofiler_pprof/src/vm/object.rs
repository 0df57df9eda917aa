//! Reads words of Ruby objects, and the header that they all have.

use rb_sys::VALUE;

/// The first two words of every object on Ruby's heap.
#[repr(C)]
struct Header {
    flags: VALUE,
    class: VALUE,
}

/// Whether `value` refers to an object on Ruby's heap, as opposed to false, nil, a small integer and the like.
#[inline]
pub fn is_heap(value: VALUE) -> bool {
    // Heap references are multiples of 8. False is 0; nil is 8 on Ruby 3.1 and 4 from 3.2 on.
    value & 7 == 0 && value > 8
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

/// The built-in type of an object: the low five bits of its flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type(pub u8);

macro_rules! types {
    ($($name:ident $value:literal $label:literal,)*) => {
        impl Type {
            $(#[doc = $label] pub const $name: Self = Self($value);)*

            /// The type's name in parentheses, which serves as the class name of objects without a class.
            pub fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                    _ => "(unknown)",
                }
            }
        }
    };
}

// include/ruby/internal/value_type.h; the same in every Ruby from 3.1 to 4.0.
types! {
    NONE 0x00 "(NONE)",
    OBJECT 0x01 "(OBJECT)",
    CLASS 0x02 "(CLASS)",
    MODULE 0x03 "(MODULE)",
    FLOAT 0x04 "(FLOAT)",
    STRING 0x05 "(STRING)",
    REGEXP 0x06 "(REGEXP)",
    ARRAY 0x07 "(ARRAY)",
    HASH 0x08 "(HASH)",
    STRUCT 0x09 "(STRUCT)",
    BIGNUM 0x0a "(BIGNUM)",
    FILE 0x0b "(FILE)",
    DATA 0x0c "(DATA)",
    MATCH 0x0d "(MATCH)",
    COMPLEX 0x0e "(COMPLEX)",
    RATIONAL 0x0f "(RATIONAL)",
    SYMBOL 0x14 "(SYMBOL)",
    IMEMO 0x1a "(IMEMO)",
    NODE 0x1b "(NODE)",
    ICLASS 0x1c "(ICLASS)",
    ZOMBIE 0x1d "(ZOMBIE)",
    MOVED 0x1e "(MOVED)",
}

impl Type {
    /// The type in a flags word.
    #[inline]
    pub fn of_flags(flags: VALUE) -> Self {
        Self((flags & 0x1f) as u8)
    }

    /// Whether only the VM itself ever sees such objects.
    pub fn is_internal(self) -> bool {
        matches!(self, Self::NONE | Self::IMEMO | Self::NODE | Self::ICLASS | Self::ZOMBIE | Self::MOVED)
    }
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
