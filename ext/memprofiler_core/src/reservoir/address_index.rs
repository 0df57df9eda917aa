//! Finds samples by address.

/// An index that is its own filter: most frees are of objects that were never sampled, and most of those searches end
/// at an empty slot or a different tag, without touching a sample. Open addressing with linear probing.
///
/// Not a `hashbrown::HashTable`: there, one free in eight finds an equal 7-bit tag among the sixteen slots of a group
/// and has to look at a sample. By `script/bench --instructions`, that costs 15 more instructions per freed object.
#[derive(Debug, Default)]
pub(super) struct AddressIndex {
    /// 0 if empty, else `tag << 24 | position + 1`.
    slots: Vec<u32>,
    /// `64 - log2(slots.len())`.
    shift: u32,
}

const POSITION_BITS: u32 = 24;
const POSITION_MASK: u32 = (1 << POSITION_BITS) - 1;

/// The maximum number of samples that slots can address.
pub(super) const MAX_SAMPLES: usize = POSITION_MASK as usize - 1;

/// Where a search ended.
pub(super) enum Probe {
    /// At the slot of the sample at this position.
    Found { slot: usize, position: usize },
    /// At this empty slot.
    Free(usize),
}

impl AddressIndex {
    /// Searches for `address`, where `address_at` returns the address of the sample at a position; None if the index
    /// has no slots.
    #[inline]
    pub fn probe(&self, address: u64, address_at: impl Fn(usize) -> u64) -> Option<Probe> {
        if self.slots.is_empty() {
            return None;
        }
        let hash = hash(address);
        let (tag, mask) = (tag(hash), self.slots.len() - 1);
        let mut slot = (hash >> self.shift) as usize;
        loop {
            let entry = self.slots[slot & mask];
            if entry == 0 {
                return Some(Probe::Free(slot & mask));
            }
            if entry & !POSITION_MASK == tag {
                let position = (entry & POSITION_MASK) as usize - 1;
                if address_at(position) == address {
                    return Some(Probe::Found { slot: slot & mask, position });
                }
            }
            slot += 1;
        }
    }

    /// Whether there may be a sample at `address`. An empty slot or a different tag rules it out without touching a
    /// sample.
    #[inline]
    pub fn may_have(&self, address: u64) -> bool {
        let hash = hash(address);
        let mask = self.slots.len().wrapping_sub(1);
        let mut slot = (hash >> (self.shift & 63)) as usize;
        // Without slots there is nothing to find; otherwise the mask keeps the index in bounds.
        while let Some(&entry) = self.slots.get(slot & mask) {
            if entry == 0 {
                return false;
            }
            if entry & !POSITION_MASK == tag(hash) {
                return true;
            }
            slot += 1;
        }
        false
    }

    /// Whether adding a sample to `count` others requires more slots.
    #[inline]
    pub fn is_full(&self, count: usize) -> bool {
        (count + 1) * 2 > self.slots.len()
    }

    /// Fills a free slot that a probe for `address` returned.
    #[inline]
    pub fn fill(&mut self, slot: usize, address: u64, position: usize) {
        self.slots[slot] = tag(hash(address)) | (position as u32 + 1);
    }

    /// Points a slot to another position.
    pub fn redirect(&mut self, slot: usize, position: usize) {
        self.slots[slot] = (self.slots[slot] & !POSITION_MASK) | (position as u32 + 1);
    }

    /// Empties a slot and moves later entries of the same run back, so that no search ends too early.
    pub fn empty(&mut self, mut hole: usize, address_at: impl Fn(usize) -> u64) {
        let mask = self.slots.len() - 1;
        let mut next = hole;
        loop {
            next = (next + 1) & mask;
            let entry = self.slots[next];
            if entry == 0 {
                break;
            }
            let position = (entry & POSITION_MASK) as usize - 1;
            let home = (hash(address_at(position)) >> self.shift) as usize;
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.slots[hole] = entry;
                hole = next;
            }
        }
        self.slots[hole] = 0;
    }

    /// Rebuilds the index for `count` samples, with some spare room; false if there is no memory for that. Even then
    /// they are indexed if the present table has room for all, which it has unless samples were added.
    pub fn rebuild(&mut self, count: usize, address_at: impl Fn(usize) -> u64) -> bool {
        let slots = ((count + 1) * 2).next_power_of_two().max(64);
        let mut table = Vec::new();
        if slots != self.slots.len() && table.try_reserve_exact(slots).is_ok() {
            table.resize(slots, 0);
            self.slots = table;
            self.shift = 64 - slots.trailing_zeros();
        } else if count < self.slots.len() {
            self.slots.fill(0);
        } else {
            return false;
        }
        for position in 0..count {
            let address = address_at(position);
            if let Some(Probe::Free(slot)) = self.probe(address, &address_at) {
                self.fill(slot, address, position);
            }
        }
        !self.is_full(count)
    }

    /// Frees all memory.
    pub fn clear(&mut self) {
        self.slots = Vec::new();
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
    }
}

/// Fibonacci hashing: the product's high bits depend on all bits of the address.
#[inline]
fn hash(address: u64) -> u64 {
    address.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The eight bits below those that choose the slot, in any table of up to 2^32 slots.
#[inline]
fn tag(hash: u64) -> u32 {
    hash as u32 & !POSITION_MASK
}
