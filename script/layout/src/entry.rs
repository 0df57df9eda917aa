//! One figure about one Ruby.

use std::fmt;

/// A figure that the frame walker needs, as one release of Ruby has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The struct or enum of CRuby that it belongs to.
    pub group: &'static str,
    /// The name it gets in layout.rs.
    pub name: &'static str,
    /// What CRuby calls it.
    pub c: &'static str,
    /// What it means, if `c` leaves that open.
    pub doc: &'static str,
    /// The figure.
    pub figure: Figure,
}

/// A figure and the way to write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Where in its struct a field lies, and how wide it is, in bytes.
    Field { offset: usize, width: usize },
    /// The size of a struct, or an enum's value.
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
