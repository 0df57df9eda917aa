//! What the VM maps for shapes from Ruby 3.3 on (shape.c, `Init_default_shapes`): a list of them, and a cache.

use memprofiler_core::ledger::{Mapping, Space};
use std::ops::Range;

/// `SHAPE_BUFFER_SIZE * sizeof(rb_shape_t)` and `REDBLACK_CACHE_SIZE * sizeof(redblack_node_t)`.
const LIST: u64 = (1 << 19) * 40;
const CACHE: u64 = (1 << 24) * 24;

/// Where both are, as far as that is within one of the `mappings`.
pub fn find(mappings: &[Mapping], space: &impl Space) -> Vec<Range<u64>> {
    let Some((list, cache)) = addresses(space) else { return Vec::new() };
    let ranges = [list..list.saturating_add(LIST), cache..cache.saturating_add(CACHE)];
    let is_mapped = |range: &Range<u64>| {
        mappings.iter().any(|mapping| mapping.writable && mapping.start <= range.start && range.end <= mapping.end)
    };
    ranges.into_iter().filter(is_mapped).collect()
}

/// The addresses of list and cache.
#[cfg(ruby_gte_4_0)]
fn addresses(space: &impl Space) -> Option<(u64, u64)> {
    /// `offsetof(rb_shape_tree_t, shape_cache)`.
    const SHAPE_CACHE: u64 = 32;
    let tree = super::super::symbols::lookup(c"rb_shape_tree")? as u64;
    let ([list, ..], [cache, ..]) = (space.words(tree)?, space.words(tree + SHAPE_CACHE)?);
    Some((list, cache))
}

/// The addresses of list and cache, which Linux maps below what was mapped before.
#[cfg(all(ruby_gte_3_3, not(ruby_gte_4_0)))]
fn addresses(_space: &impl Space) -> Option<(u64, u64)> {
    use std::ffi::c_void;
    let function = super::super::symbols::lookup(c"rb_shape_get_shape_by_id")?;
    // SAFETY: `rb_shape_t *rb_shape_get_shape_by_id(shape_id_t)`, which adds to the address of the list.
    let function = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(u32) -> *const c_void>(function) };
    // SAFETY: as above; there is always a first shape.
    let list = unsafe { function(0) } as u64;
    Some((list, list.checked_sub(CACHE)?))
}

/// Older Rubies have none.
#[cfg(not(ruby_gte_3_3))]
fn addresses(_space: &impl Space) -> Option<(u64, u64)> {
    None
}
