//! Finds the node of an address.

use super::NodeId;
use crate::hash::Map;

/// A page of Ruby's heap is aligned to its size of 64 KiB.
const PAGE_BITS: u32 = 16;
/// No slot of Ruby's heap is smaller than 32 bytes, so no two begin in the same 32 bytes, however they are aligned.
const CELL_BITS: u32 = 5;
const CELLS: usize = 1 << (PAGE_BITS - CELL_BITS);
const EMPTY: u32 = u32::MAX;

/// Maps addresses to nodes without hashing each: a page has a table with a cell for each 32 bytes, which takes an
/// eighth of the memory of Ruby's heap.
///
/// A cell contains the number of the node, and in its lowest bits which of the four multiples of 8 within the 32 bytes
/// the address is. Other addresses in the same cell, and those that are no multiple of 8, are hashed: correct, slower,
/// and not what a heap of Ruby has.
#[derive(Debug)]
pub struct AddressIndex {
    /// The place of a page's table in `cells`.
    pages: Map<u64, u32>,
    cells: Vec<u32>,
    others: Map<u64, NodeId>,
    /// The page that was looked up last, and its place.
    last: (u64, u32),
}

impl AddressIndex {
    /// How many nodes there can be.
    pub const LIMIT: usize = (1 << 30) - 1;

    pub fn new() -> Self {
        Self { pages: Map::default(), cells: Vec::new(), others: Map::default(), last: (u64::MAX, 0) }
    }

    /// The node of an address.
    pub fn get(&self, address: u64) -> Option<NodeId> {
        let Some(tag) = tag(address) else { return self.others.get(&address).copied() };
        let &page = self.pages.get(&(address >> PAGE_BITS))?;
        match self.cells[place(page, address)] {
            EMPTY => None,
            cell if cell & 3 == tag => Some(NodeId::new((cell >> 2) as usize)),
            _ => self.others.get(&address).copied(),
        }
    }

    /// The node of an address; `new`, which must be less than [`LIMIT`](Self::LIMIT), if it has none yet.
    #[inline]
    pub fn get_or_insert(&mut self, address: u64, new: NodeId) -> NodeId {
        let Some(tag) = tag(address) else { return *self.others.entry(address).or_insert(new) };
        let page = address >> PAGE_BITS;
        if page != self.last.0 {
            self.last = (page, self.table(page));
        }
        let cell = &mut self.cells[place(self.last.1, address)];
        if *cell == EMPTY {
            *cell = (new.index() as u32) << 2 | tag;
            new
        } else if *cell & 3 == tag {
            NodeId::new((*cell >> 2) as usize)
        } else {
            *self.others.entry(address).or_insert(new)
        }
    }

    /// Gives back the memory of tables that are not there.
    pub fn shrink(&mut self) {
        self.cells.shrink_to_fit();
    }

    fn table(&mut self, page: u64) -> u32 {
        let cells = &mut self.cells;
        *self.pages.entry(page).or_insert_with(|| {
            let number = cells.len() / CELLS;
            cells.resize(cells.len() + CELLS, EMPTY);
            number as u32
        })
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.cells.len() * size_of::<u32>()
            + self.pages.capacity() * size_of::<(u64, u32)>()
            + self.others.capacity() * size_of::<(u64, NodeId)>()
    }
}

/// Which multiple of 8 within its cell the address is.
#[inline]
fn tag(address: u64) -> Option<u32> {
    (address % 8 == 0).then_some((address >> 3) as u32 & 3)
}

/// The place of the address's cell, in a page with the given table.
#[inline]
fn place(table: u32, address: u64) -> usize {
    table as usize * CELLS + (address as usize >> CELL_BITS) % CELLS
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn finds_what_a_hash_table_finds() {
        let mut random = SmallRng::seed_from_u64(1);
        // Slots of Ruby's heap, and whatever else an address could be.
        let slots = |random: &mut SmallRng| 0x7f00_0000_0000 + 40 * random.random_range(0..20_000_u64);
        let close = |random: &mut SmallRng| random.random_range(0..2_000_u64);
        let any = |random: &mut SmallRng| random.random::<u64>() << random.random_range(0..64_u32);
        for kind in [slots, close, any] {
            let (mut index, mut expected) = (AddressIndex::new(), std::collections::HashMap::new());
            for _ in 0..5_000 {
                let address = kind(&mut random);
                let new = NodeId::new(expected.len());
                assert_eq!(index.get(address), expected.get(&address).copied(), "{address:x}");
                let &mut node = expected.entry(address).or_insert(new);
                assert_eq!(index.get_or_insert(address, new), node, "{address:x}");
                assert_eq!(index.get(address), Some(node));
            }
        }
    }

    #[test]
    fn the_slots_of_a_heap_are_never_hashed() {
        for size in [32, 40, 48, 64, 80, 160, 640] {
            for start in [0x7f00_0000_0000_u64, 0x7f00_0000_0010, 0x7f00_0000_0038] {
                let mut index = AddressIndex::new();
                for slot in 0..5_000 {
                    assert_eq!(
                        index.get_or_insert(start + slot * size, NodeId::new(slot as usize)).index() as u64,
                        slot
                    );
                }
                assert!(index.others.is_empty(), "slots of {size} bytes");
            }
        }
    }

    #[test]
    fn the_greatest_node_fits() {
        let mut index = AddressIndex::new();
        let greatest = NodeId::new(AddressIndex::LIMIT - 1);
        index.get_or_insert(0x38, greatest);
        assert_eq!(index.get(0x38), Some(greatest));
    }
}
