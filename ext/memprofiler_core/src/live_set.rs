//! The samples whose objects are alive.

use crate::stack_tree::StackId;

/// The class of a sampled object, an id in the caller's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u32);

/// The probability with which a sample was taken, an id in a [`RateTable`](crate::rates::RateTable).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RateId(pub u16);

/// One sampled object that is alive.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Where the object lies.
    pub address: u64,
    /// The stack that allocated it; the sample holds a reference.
    pub stack: StackId,
    /// Its class as last seen; the sample holds a reference.
    pub class: ClassId,
    /// How many garbage collections had run when it was allocated.
    pub born: u32,
    /// The probability of its inclusion.
    pub rate: RateId,
    /// The flush that last visited it, or that began last before it was allocated; modulo 256.
    pub seen: u8,
    /// Its allocation has not been part of a profile yet.
    pub unreported: bool,
}

/// Samples in a dense list, found by address through an index that is its own filter: most frees are of objects that
/// were never sampled, and most of those end at an empty slot or a tag that differs, without touching a sample.
#[derive(Debug, Default)]
pub struct LiveSet {
    samples: Vec<Sample>,
    /// Open addressing with linear probing. A slot is 0 if empty, else `tag << 24 | position + 1`.
    slots: Vec<u32>,
    /// `64 - log2(slots.len())`.
    shift: u32,
}

const POSITION_BITS: u32 = 24;
const POSITION_MASK: u32 = (1 << POSITION_BITS) - 1;

impl LiveSet {
    /// The most samples that the index can tell apart.
    pub const MAX_SAMPLES: usize = POSITION_MASK as usize - 1;

    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The samples, in no particular order.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The sample at `position` in [`samples`](Self::samples); its address must not be changed.
    pub fn sample_mut(&mut self, position: usize) -> Option<&mut Sample> {
        self.samples.get_mut(position)
    }

    /// All samples; their addresses must not be changed.
    pub fn samples_mut(&mut self) -> impl Iterator<Item = &mut Sample> {
        self.samples.iter_mut()
    }

    /// Adds a sample whose address is not in the set.
    pub fn insert(&mut self, sample: Sample) {
        if (self.samples.len() + 1) * 4 > self.slots.len() * 3 {
            self.grow_index();
        }
        if self.samples.len() == self.samples.capacity() {
            // Doubling would leave up to half of the memory unused.
            self.samples.reserve_exact(self.samples.len() / 2 + 64);
        }
        self.samples.push(sample);
        self.index(self.samples.len() - 1);
    }

    /// Removes and returns the sample at `address`, if there is one.
    pub fn remove(&mut self, address: u64) -> Option<Sample> {
        let (slot, position) = self.find(address)?;
        self.remove_slot(slot);
        Some(self.take(position))
    }

    /// Removes and returns the sample at `position` in [`samples`](Self::samples); the last sample takes its place.
    pub fn remove_at(&mut self, position: usize) -> Option<Sample> {
        self.remove(self.samples.get(position)?.address)
    }

    /// Whether there is a sample at `address`.
    pub fn contains(&self, address: u64) -> bool {
        self.find(address).is_some()
    }

    /// Gives every sample the address that `moved` returns for its old one.
    pub fn relocate(&mut self, mut moved: impl FnMut(u64) -> u64) {
        let mut changed = false;
        for sample in &mut self.samples {
            let address = moved(sample.address);
            changed |= address != sample.address;
            sample.address = address;
        }
        if changed {
            self.rebuild_index();
        }
    }

    /// Removes all samples and returns them.
    pub fn drain(&mut self) -> Vec<Sample> {
        self.slots = Vec::new();
        std::mem::take(&mut self.samples)
    }

    /// Gives memory back that a set of this size does not need.
    pub fn shrink(&mut self) {
        if self.samples.capacity() > 2 * self.samples.len() + 1024 {
            self.samples.shrink_to(self.samples.len() * 5 / 4);
            self.slots = Vec::new();
            self.grow_index();
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.samples.capacity() * size_of::<Sample>() + self.slots.capacity() * size_of::<u32>()
    }

    #[inline]
    fn hash(address: u64) -> u64 {
        // Fibonacci hashing: the product's high bits depend on all bits of the address.
        address.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// The tag uses bits below those that choose the slot in any table of up to 2^32 slots.
    #[inline]
    fn tag(hash: u64) -> u32 {
        (hash >> 24) as u32 & !POSITION_MASK
    }

    #[inline]
    fn find(&self, address: u64) -> Option<(usize, usize)> {
        if self.slots.is_empty() {
            return None;
        }
        let hash = Self::hash(address);
        let tag = Self::tag(hash);
        let mask = self.slots.len() - 1;
        let mut slot = (hash >> self.shift) as usize;
        loop {
            let entry = *self.slots.get(slot)?;
            if entry == 0 {
                return None;
            }
            if entry & !POSITION_MASK == tag {
                let position = (entry & POSITION_MASK) as usize - 1;
                if self.samples[position].address == address {
                    return Some((slot, position));
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Enters the sample at `position` into the index.
    fn index(&mut self, position: usize) {
        let hash = Self::hash(self.samples[position].address);
        let mask = self.slots.len() - 1;
        let mut slot = (hash >> self.shift) as usize;
        while self.slots[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = Self::tag(hash) | (position as u32 + 1);
    }

    /// Empties a slot and moves later ones of the same run back, so that no search ends too early.
    fn remove_slot(&mut self, mut hole: usize) {
        let mask = self.slots.len() - 1;
        let mut next = hole;
        loop {
            next = (next + 1) & mask;
            let entry = self.slots[next];
            if entry == 0 {
                break;
            }
            let position = (entry & POSITION_MASK) as usize - 1;
            let home = (Self::hash(self.samples[position].address) >> self.shift) as usize;
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.slots[hole] = entry;
                hole = next;
            }
        }
        self.slots[hole] = 0;
    }

    /// Takes the sample at `position`, which is no longer indexed, out of the list.
    fn take(&mut self, position: usize) -> Sample {
        let last = self.samples.len() - 1;
        if position != last
            && let Some((slot, _)) = self.find(self.samples[last].address)
        {
            self.slots[slot] = (self.slots[slot] & !POSITION_MASK) | (position as u32 + 1);
        }
        self.samples.swap_remove(position)
    }

    fn grow_index(&mut self) {
        let slots = ((self.samples.len() + 1) * 4 / 3 + 1).next_power_of_two().max(64);
        self.slots = vec![0; slots];
        self.shift = 64 - slots.trailing_zeros();
        (0..self.samples.len()).for_each(|position| self.index(position));
    }

    fn rebuild_index(&mut self) {
        self.slots.fill(0);
        (0..self.samples.len()).for_each(|position| self.index(position));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};
    use std::collections::HashMap;

    fn sample(address: u64, born: u32) -> Sample {
        Sample { address, stack: StackId::EMPTY, class: ClassId(0), born, rate: RateId(0), seen: 0, unreported: true }
    }

    #[test]
    fn a_sample_is_three_words() {
        assert_eq!(size_of::<Sample>(), 24);
    }

    #[test]
    fn agrees_with_a_map_under_random_operations() {
        let mut random = SmallRng::seed_from_u64(3);
        let (mut set, mut model) = (LiveSet::new(), HashMap::new());
        for step in 0..200_000u32 {
            // Few enough addresses that inserts, hits and misses all happen often.
            let address = 0x7f00_0000_0000 + random.random_range(0..6_000u64) * 40;
            if random.random::<bool>() {
                assert_eq!(set.remove(address).map(|s| s.born), model.remove(&address));
            } else if !model.contains_key(&address) {
                set.insert(sample(address, step));
                model.insert(address, step);
            }
            assert_eq!(set.len(), model.len());
        }
        for (&address, &born) in &model {
            assert_eq!(set.remove(address).map(|s| s.born), Some(born));
        }
        assert!(set.is_empty());
    }

    #[test]
    fn samples_are_found_at_their_new_addresses_after_a_move() {
        let mut set = LiveSet::new();
        (0..100).for_each(|i| set.insert(sample(i * 40, i as u32)));
        set.relocate(|address| if address % 80 == 0 { address + 1_000_000 } else { address });
        assert!(!set.contains(80) && set.contains(40));
        assert_eq!(set.remove(1_000_080).map(|s| s.born), Some(2));
    }

    #[test]
    fn walking_downwards_visits_every_sample_in_spite_of_removals() {
        let mut set = LiveSet::new();
        (0..1000).for_each(|i| set.insert(sample(i * 40, i as u32)));
        let (mut seen, mut position) = (vec![0; 1000], 1000);
        while position > 0 {
            position -= 1;
            let Some(sample) = set.sample_mut(position) else { continue };
            if sample.seen == 0 {
                sample.seen = 1;
                seen[sample.born as usize] += 1;
            }
            // Every third step something dies, on either side of the walk.
            if position % 3 == 0 {
                set.remove((position as u64 * 7919 % 1000) * 40);
            }
        }
        for sample in set.samples() {
            assert_eq!(seen[sample.born as usize], 1);
        }
    }

    #[test]
    fn memory_per_sample_is_bounded() {
        let mut set = LiveSet::new();
        for i in 0..300_000u64 {
            set.insert(sample(i * 40, 0));
            assert!(i < 10_000 || set.bytes() <= 48 * set.len(), "{} at {i}", set.bytes());
        }
    }
}
