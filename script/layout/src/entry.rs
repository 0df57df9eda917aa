//! One figure about one Ruby.

use std::fmt;

/// A figure that the frame walker needs, for one release of Ruby.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The CRuby struct or enum that it belongs to.
    pub group: &'static str,
    /// Its name in layout.rs.
    pub name: &'static str,
    /// Its name in CRuby.
    pub c: &'static str,
    /// What it means, unless `c` makes that clear.
    pub doc: &'static str,
    /// The figure.
    pub figure: Figure,
}

/// A figure and how to write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// The offset of a field in its struct and its width, in bytes.
    Field { offset: usize, width: usize },
    /// The size of a struct, or the value of an enum constant.
    Number(usize),
    /// Flags or a mask.
    Bits(usize),
}

impl Figure {
    /// The width of a field.
    pub fn width(self) -> Option<usize> {
        match self {
            Self::Field { width, .. } => Some(width),
            _ => None,
        }
    }
}

/// As a Rust literal.
impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Field { offset: number, .. } | Self::Number(number) => write!(f, "{number}"),
            Self::Bits(bits) if bits > 0xffff => write!(f, "{:#x}_{:04x}", bits >> 16, bits & 0xffff),
            Self::Bits(bits) => write!(f, "{bits:#x}"),
        }
    }
}
