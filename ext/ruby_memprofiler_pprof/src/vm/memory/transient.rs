//! The transient heap of Ruby 3.1 and 3.2 (transient_heap.c): 32 MB for what young Arrays, Hashes, Structs and objects
//! own, in blocks of 32 KB. It is mapped when the VM starts, and stays where it is.

use super::super::object::Type;
use memprofiler_core::ledger::Space;
use rb_sys::VALUE;
use std::ops::Range;

/// Whether an object of this type and with these flags owns memory in the transient heap.
#[cfg(not(ruby_gte_3_3))]
pub fn is_owner(kind: Type, flags: VALUE) -> bool {
    /// `RUBY_FL_USHIFT`.
    const USER: VALUE = 12;
    let flag = |number: VALUE| flags >> (USER + number) & 1 == 1;
    match kind {
        Type::ARRAY => flag(13),
        // Ruby 3.2 allocates them otherwise, and has another meaning for the flag.
        Type::OBJECT => cfg!(not(ruby_gte_3_2)) && flag(13),
        Type::HASH => flag(if cfg!(ruby_gte_3_2) { 12 } else { 14 }),
        Type::STRUCT => flag(3),
        _ => false,
    }
}

/// Whether an object of this type and with these flags owns memory in the transient heap.
#[cfg(ruby_gte_3_3)]
pub fn is_owner(_kind: Type, _flags: VALUE) -> bool {
    false
}

/// Where it is, if there is one and an Array that is made now has its elements there. `open` is only called until then.
#[cfg(not(ruby_gte_3_3))]
pub fn find<S: Space>(open: impl FnOnce() -> S) -> Option<Range<u64>> {
    use super::super::object::{flags, read};
    use super::super::protect;
    use std::sync::OnceLock;
    /// `offsetof(struct RArray, as.heap.ptr)`, without `RARRAY_EMBED_FLAG`.
    const ELEMENTS: usize = 32;
    static FOUND: OnceLock<Range<u64>> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Some(found.clone());
    }
    let elements = protect(|| {
        // SAFETY: the GVL is held. The new Array is on this stack, and too large for its slot.
        unsafe {
            let array = rb_sys::rb_ary_new_capa(8);
            is_owner(Type::ARRAY, flags(array)).then(|| read(array as *const u8, ELEMENTS) as u64)
        }
    });
    let found = blocks(elements.ok()??, &open())?;
    Some(FOUND.get_or_init(|| found).clone())
}

/// Where it is, if there is one.
#[cfg(ruby_gte_3_3)]
pub fn find<S: Space>(_open: impl FnOnce() -> S) -> Option<Range<u64>> {
    None
}

/// All blocks, one of which contains `address`.
#[cfg(not(ruby_gte_3_3))]
fn blocks(address: u64, space: &impl Space) -> Option<Range<u64>> {
    const BLOCK: u64 = 32 << 10;
    const SIZE: u64 = 32 << 20;
    // `struct transient_heap_block_header`: three numbers of 16 bits, and the address of another block or null.
    let is_block = |address: u64| {
        let Some([numbers, next, ..]) = space.words(address) else { return false };
        let (used, last_marked) = (numbers & 0xffff, numbers >> 16 & 0xffff);
        let is_empty = used == 0;
        // `TRANSIENT_HEAP_ALLOC_MARKING_LAST` is -1.
        used <= BLOCK
            && (!is_empty || last_marked == 0xffff)
            && (next == 0 || next % BLOCK == 0 && next.abs_diff(address) < SIZE)
    };
    let block = address / BLOCK * BLOCK;
    let mut start = block;
    while start > block.saturating_sub(SIZE) && is_block(start - BLOCK) {
        start -= BLOCK;
    }
    let mut end = block + BLOCK;
    while end < start + SIZE && is_block(end) {
        end += BLOCK;
    }
    (end - start == SIZE).then_some(start..end)
}
