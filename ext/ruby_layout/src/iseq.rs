//! Instruction sequences and other internal objects of the VM.

use crate::layout;
use crate::memory::Memory;
use crate::object::{Type, flags, is_heap};

/// The kind of an internal object, a T_IMEMO; None for any other value.
#[inline(always)]
pub fn imemo_type<M: Memory>(memory: &M, value: usize) -> Result<Option<usize>, M::Error> {
    if !is_heap(value as u64) {
        return Ok(None);
    }
    let flags = flags(memory, value)?;
    let kind = (flags >> layout::IMEMO_TYPE_SHIFT) & layout::IMEMO_TYPE_MASK;
    Ok((Type::of_flags(flags as u64) == Type::IMEMO).then_some(kind))
}

/// The `rb_iseq_constant_body` of `iseq`.
#[inline(always)]
pub fn body<M: Memory>(memory: &M, iseq: usize) -> Result<usize, M::Error> {
    memory.word(iseq.wrapping_add(layout::ISEQ_BODY))
}

/// Address and length, in words, of the code of `iseq`.
#[inline(always)]
pub fn code<M: Memory>(memory: &M, iseq: usize) -> Result<(usize, u32), M::Error> {
    let body = body(memory, iseq)?;
    let size = memory.half(body.wrapping_add(layout::ISEQ_BODY_ISEQ_SIZE))?;
    Ok((memory.word(body.wrapping_add(layout::ISEQ_BODY_ISEQ_ENCODED))?, size))
}

/// The `enum rb_iseq_type` of `iseq`.
#[inline(always)]
pub fn kind<M: Memory>(memory: &M, iseq: usize) -> Result<usize, M::Error> {
    Ok(memory.half(body(memory, iseq)?.wrapping_add(layout::ISEQ_BODY_TYPE))? as usize)
}

/// Whether `iseq` is the body of a rescue or ensure clause.
pub fn is_handler<M: Memory>(memory: &M, iseq: usize) -> Result<bool, M::Error> {
    Ok(matches!(kind(memory, iseq)?, layout::ISEQ_TYPE_RESCUE | layout::ISEQ_TYPE_ENSURE))
}
