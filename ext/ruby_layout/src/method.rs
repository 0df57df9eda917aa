//! Method entries.

use crate::iseq::imemo_type;
use crate::layout;
use crate::memory::Memory;

/// A method that define_method has defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockMethod {
    /// The ID of the name under which it was defined.
    pub id: usize,
    /// The instruction sequence of its block; None if the block is not Ruby code.
    pub iseq: Option<usize>,
}

impl BlockMethod {
    /// The method of `entry`, a method entry; None if it was defined otherwise.
    pub fn of<M: Memory>(memory: &M, entry: usize) -> Result<Option<Self>, M::Error> {
        let definition = memory.word(entry.wrapping_add(layout::ME_DEF))?;
        if memory.word(definition)? & layout::METHOD_TYPE_MASK != layout::METHOD_TYPE_BMETHOD {
            return Ok(None);
        }
        let id = memory.word(definition.wrapping_add(layout::METHOD_DEF_ORIGINAL_ID))?;
        let body = memory.word(definition.wrapping_add(layout::METHOD_DEF_BMETHOD_PROC))?;
        let block = memory.word(body.wrapping_add(layout::RTYPEDDATA_DATA))?;
        let kind = memory.half(block.wrapping_add(layout::PROC_BLOCK_TYPE))? as usize;
        let iseq = memory.word(block.wrapping_add(layout::PROC_BLOCK_CODE))?;
        let is_code = kind == layout::BLOCK_TYPE_ISEQ && imemo_type(memory, iseq)? == Some(layout::IMEMO_ISEQ);
        Ok(Some(Self { id, iseq: is_code.then_some(iseq) }))
    }
}
