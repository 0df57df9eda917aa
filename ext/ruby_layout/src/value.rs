//! The contents of Strings and Arrays.

use crate::layout::{self, Layout};
use crate::memory::Memory;
use crate::object::{Type, type_of};

/// Names and paths are shorter, in bytes.
const LONGEST: usize = 1 << 16;

/// The text of a String; None for any other value.
pub fn string<M: Memory>(memory: &M, layout: &Layout, value: usize) -> Result<Option<String>, M::Error> {
    if type_of(memory, value)? != Some(Type::STRING) {
        return Ok(None);
    }
    let flags = memory.word(value)?;
    let embedded = flags & layout::STRING_NOEMBED == 0;
    let length = if embedded && layout.string_embedded == layout::STRING_LEN {
        (flags >> layout::STRING_EMBED_LEN_SHIFT) & 0x1f
    } else {
        memory.word(value.wrapping_add(layout::STRING_LEN))?
    };
    let start = if embedded {
        value.wrapping_add(layout.string_embedded)
    } else {
        memory.word(value.wrapping_add(layout::STRING_PTR))?
    };
    if length > LONGEST {
        memory.reject()?;
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&memory.bytes(start, length)?).into_owned()))
}

/// The elements of an Array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elements {
    start: usize,
    /// How many there are.
    pub count: usize,
}

impl Elements {
    /// Those of an Array; None for any other value.
    pub fn of<M: Memory>(memory: &M, layout: &Layout, value: usize) -> Result<Option<Self>, M::Error> {
        if type_of(memory, value)? != Some(Type::ARRAY) {
            return Ok(None);
        }
        let flags = memory.word(value)?;
        if flags & layout::ARRAY_EMBED != 0 {
            let count = (flags & layout.array_embed_len_mask) >> layout::ARRAY_EMBED_LEN_SHIFT;
            return Ok(Some(Self { start: value.wrapping_add(layout::ARRAY_EMBEDDED), count }));
        }
        Ok(Some(Self {
            start: memory.word(value.wrapping_add(layout::ARRAY_PTR))?,
            count: memory.word(value.wrapping_add(layout::ARRAY_LEN))?,
        }))
    }

    /// Element number `index`; None if there are fewer.
    pub fn get<M: Memory>(&self, memory: &M, index: usize) -> Result<Option<usize>, M::Error> {
        if index >= self.count {
            return Ok(None);
        }
        memory.word(self.start.wrapping_add(index.wrapping_mul(size_of::<usize>()))).map(Some)
    }
}
