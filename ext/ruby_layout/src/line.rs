//! The lines of Ruby code.

use crate::iseq;
use crate::layout::{self, Layout};
use crate::memory::Memory;

// struct succ_index_table of iseq.c: which run of code a position belongs to. Of the first positions, groups of 9 have
// 7 bits each; of the others, blocks of 512 have a rank, the ranks of their eighths, and a bit each.
const FIRST: usize = 54;
const GROUP: usize = 9;
const BLOCKS: usize = 48;
const BLOCK_SIZE: usize = 80;
const BLOCK: usize = 512;
const SMALL_RANKS: usize = 8;
const BITS: usize = 16;

/// The line of the word at `index` of the code of `iseq`; 0 if unknown. As `rb_iseq_line_no`.
pub fn line<M: Memory>(memory: &M, layout: &Layout, iseq: usize, index: usize) -> Result<u32, M::Error> {
    let body = iseq::body(memory, iseq)?;
    let size = memory.half(body.wrapping_add(layout.iseq_body_insns_size))?;
    let number = match size {
        0 => return Ok(0),
        1 => 0,
        _ => rank(memory, memory.word(body.wrapping_add(layout.iseq_body_insns_index))?, index)?.wrapping_sub(1),
    };
    if number >= size {
        memory.reject()?;
        return Ok(0);
    }
    let runs = memory.word(body.wrapping_add(layout.iseq_body_insns))?;
    let run = runs.wrapping_add(layout::INSN_SIZE.wrapping_mul(number as usize));
    memory.half(run.wrapping_add(layout::INSN_LINE_NO))
}

/// As `succ_index_lookup`: how many runs begin at `index` or before.
fn rank<M: Memory>(memory: &M, table: usize, index: usize) -> Result<u32, M::Error> {
    if index < FIRST {
        let group = memory.word(table.wrapping_add(index / GROUP * size_of::<u64>()))?;
        return Ok((group >> (7 * (index % GROUP))) as u32 & 0x7f);
    }
    let index = index - FIRST;
    let block = table.wrapping_add(BLOCKS).wrapping_add(index / BLOCK * BLOCK_SIZE);
    let (small, bit) = (index % BLOCK / 64, index % 64);
    let ranks = memory.word(block.wrapping_add(SMALL_RANKS))?;
    let before = if small == 0 { 0 } else { (ranks >> (9 * (small - 1))) as u32 & 0x1ff };
    let bits = memory.word(block.wrapping_add(BITS).wrapping_add(small * size_of::<u64>()))?;
    Ok(memory.half(block)?.wrapping_add(before).wrapping_add((bits << (63 - bit)).count_ones()))
}
