//! The header that all Ruby objects have.

use crate::memory::Memory;

/// Whether `value` refers to an object on Ruby's heap, as opposed to false, nil, a small integer and the like.
#[inline(always)]
pub const fn is_heap(value: u64) -> bool {
    // Heap references are multiples of 8. False is 0; nil is 8 on Ruby 3.1 and 4 from 3.2 on.
    value & 7 == 0 && value > 8
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
    #[inline(always)]
    pub const fn of_flags(flags: u64) -> Self {
        Self((flags & 0x1f) as u8)
    }

    /// Whether only the VM itself ever sees such objects.
    pub fn is_internal(self) -> bool {
        matches!(self, Self::NONE | Self::IMEMO | Self::NODE | Self::ICLASS | Self::ZOMBIE | Self::MOVED)
    }
}

/// The flags word of an object.
#[inline(always)]
pub fn flags<M: Memory>(memory: &M, object: usize) -> Result<usize, M::Error> {
    memory.word(object)
}

/// The type of what `value` refers to; None for what is no reference.
pub fn type_of<M: Memory>(memory: &M, value: usize) -> Result<Option<Type>, M::Error> {
    Ok(if is_heap(value as u64) { Some(Type::of_flags(flags(memory, value)? as u64)) } else { None })
}
