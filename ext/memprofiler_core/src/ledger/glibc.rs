//! Where glibc's malloc keeps its memory, found by how it begins (malloc/malloc.c, arena.c): in what `brk` has grown,
//! in the heaps of further arenas, and in a mapping for each large block.

use super::residency::Residency;
use super::survey::Space;
use std::ops::Range;

/// Arenas' heaps begin at multiples of it, and are no larger: `HEAP_MAX_SIZE`.
const HEAP_SIZE: u64 = 64 << 20;
/// The least size of a block that gets a mapping of its own: `DEFAULT_MMAP_THRESHOLD` can be set down to less, but then
/// there is no telling such blocks from data.
const SMALLEST_MAPPED: u64 = 32 << 10;
/// `sizeof(heap_info)`: 0x20 up to version 2.34, 0x30 since.
const INFO_SIZES: [u64; 2] = [0x20, 0x30];

/// The heaps of arenas in a range of addresses.
pub fn heaps(addresses: &Range<u64>, page_size: u64, space: &impl Space) -> Vec<Range<u64>> {
    let mut heaps = Vec::new();
    let mut start = addresses.start.next_multiple_of(HEAP_SIZE);
    while start < addresses.end {
        if let Some(size) = heap_size(start, page_size, space) {
            heaps.push(start..(start + size).min(addresses.end));
        }
        start += HEAP_SIZE;
    }
    heaps
}

/// The size of the heap that begins at `start`, if one does.
fn heap_size(start: u64, page_size: u64, space: &impl Space) -> Option<u64> {
    // `struct heap_info`: the arena, the arena's previous heap, the size in use, the size that can be written to.
    let [arena, _, size, writable] = space.words(start)?;
    let fits = |size: u64| size != 0 && size <= HEAP_SIZE && size % page_size == 0;
    // The first heap of an arena contains it.
    let first = arena / HEAP_SIZE * HEAP_SIZE;
    let contained = INFO_SIZES.contains(&(arena - first));
    let same = first == start || space.words(first)?[0] == arena;
    (contained && same && fits(size) && fits(writable) && size <= writable).then_some(writable)
}

/// Claims the blocks with mappings of their own, and returns the bytes of them that are in memory.
pub fn take_mapped_blocks(
    residency: &mut Residency,
    addresses: &Range<u64>,
    page_size: u64,
    space: &impl Space,
) -> u64 {
    let (mut at, mut taken) = (addresses.start, 0);
    while let Some(page) = residency.next(at) {
        at = match mapped_block(page, page_size, space) {
            Some(size) if size <= addresses.end - page => {
                taken += residency.take(&(page..page + size));
                page + size
            }
            _ => page + page_size,
        };
    }
    taken
}

/// The size of the block that begins at `page`, if one does.
fn mapped_block(page: u64, page_size: u64, space: &impl Space) -> Option<u64> {
    /// `IS_MMAPPED` among the three lowest bits of a size.
    const MAPPED: u64 = 2;
    /// `CHUNK_HDR_SZ`: from some version between 2.36 and 2.43 on, the size does not include it.
    const HEADER: u64 = 16;
    let [before, size, ..] = space.words(page)?;
    let bytes = (size & !7).checked_add(HEADER)? / page_size * page_size;
    let is_whole = [bytes, bytes.wrapping_sub(HEADER)].contains(&(size & !7));
    (before == 0 && size & 7 == MAPPED && is_whole && bytes >= SMALLEST_MAPPED).then_some(bytes)
}
