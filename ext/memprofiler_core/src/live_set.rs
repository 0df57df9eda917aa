//! The samples whose objects are alive.

use crate::address_index::{self, AddressIndex, Probe};
use crate::readers::Readers;
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
    /// Who has not been told of its allocation yet.
    pub unreported: Readers,
}

/// What a garbage collection says of a sampled object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is not reachable.
    Dead,
    /// It is alive, and may be found dead by the next collection.
    Young,
    /// It is alive, and only a major collection can find it dead.
    Old,
}

/// Samples in a dense list, in no particular order but that the old ones come first.
#[derive(Debug)]
pub struct LiveSet {
    samples: Vec<Sample>,
    /// How many of the samples are known to be old.
    old: usize,
    index: Option<AddressIndex>,
    /// Counts what moves samples upwards in the list.
    reorderings: u32,
}

impl LiveSet {
    /// The most samples that a set can hold.
    pub const MAX_SAMPLES: usize = address_index::MAX_SAMPLES;

    /// An empty set whose samples are found by address.
    pub fn by_address() -> Self {
        Self { samples: Vec::new(), old: 0, index: Some(AddressIndex::default()), reorderings: 0 }
    }

    /// An empty set whose samples are only ever looked at one after the other.
    pub fn by_position() -> Self {
        Self { samples: Vec::new(), old: 0, index: None, reorderings: 0 }
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The samples.
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

    /// A number that changes when samples move upwards in the list, which otherwise happens to none: whoever walks
    /// downwards meets each sample that was there at the beginning.
    pub fn reorderings(&self) -> u32 {
        self.reorderings
    }

    /// Makes sure of room for one more sample; false if there is no memory for it.
    #[inline]
    pub fn try_reserve(&mut self) -> bool {
        if self.samples.len() == self.samples.capacity()
            // Doubling would leave up to half of the memory unused.
            && self.samples.try_reserve_exact(self.samples.len() / 4 + 64).is_err()
        {
            return false;
        }
        match &mut self.index {
            Some(index) if index.is_full(self.samples.len()) => index.rebuild(&self.samples),
            _ => true,
        }
    }

    /// Adds a sample. Returns the one that was at the same address, if the set finds samples by address and has one.
    #[inline]
    pub fn insert(&mut self, sample: Sample) -> Option<Sample> {
        if self.samples.len() == self.samples.capacity() {
            // Doubling would leave up to half of the memory unused.
            self.samples.reserve_exact(self.samples.len() / 4 + 64);
        }
        if let Some(index) = &mut self.index {
            if index.is_full(self.samples.len()) {
                index.rebuild(&self.samples);
            }
            match index.probe(&self.samples, sample.address) {
                Some(Probe::Found { position, .. }) => {
                    return Some(std::mem::replace(&mut self.samples[position], sample));
                }
                Some(Probe::Free(slot)) => index.fill(slot, sample.address, self.samples.len()),
                None => {}
            }
        }
        self.samples.push(sample);
        None
    }

    /// Whether there may be a sample at `address`: a quick answer that is yes for a few others, too.
    #[inline]
    pub fn may_have(&self, address: u64) -> bool {
        self.index.as_ref().is_some_and(|index| index.may_have(address))
    }

    /// Removes and returns the sample at `address`, if the set finds samples by address and has it.
    #[inline]
    pub fn remove(&mut self, address: u64) -> Option<Sample> {
        let index = self.index.as_mut()?;
        let Probe::Found { slot, position } = index.probe(&self.samples, address)? else { return None };
        index.empty(&self.samples, slot);
        let last = self.samples.len() - 1;
        if position != last {
            if let Some(Probe::Found { slot, .. }) = index.probe(&self.samples, self.samples[last].address) {
                index.redirect(slot, position);
            }
        }
        Some(self.samples.swap_remove(position))
    }

    /// Removes and returns the sample at `position` in [`samples`](Self::samples); another takes its place.
    pub fn remove_at(&mut self, mut position: usize) -> Option<Sample> {
        let address = self.samples.get(position)?.address;
        if self.index.is_some() {
            return self.remove(address);
        }
        if position < self.old {
            self.old -= 1;
            self.samples.swap(position, self.old);
            position = self.old;
            self.reorderings += 1;
        }
        Some(self.samples.swap_remove(position))
    }

    /// Asks for the fate of each sample after a garbage collection, of the old ones only after a `major` one, removes
    /// the dead and passes them to `bury`. `fate` is told whether a sample is known to be old, which need not be found
    /// out again. For a set by position.
    pub fn collect(&mut self, major: bool, mut fate: impl FnMut(&Sample, bool) -> Fate, mut bury: impl FnMut(Sample)) {
        debug_assert!(self.index.is_none());
        let mut position = if major { 0 } else { self.old };
        while let Some(sample) = self.samples.get(position) {
            match fate(sample, position < self.old) {
                Fate::Dead => {
                    // Most die young.
                    if position >= self.old {
                        bury(self.samples.swap_remove(position));
                    } else if let Some(dead) = self.remove_at(position) {
                        bury(dead);
                    }
                    // Another sample that was not asked about lies here now.
                    continue;
                }
                Fate::Old if position >= self.old => {
                    self.samples.swap(position, self.old);
                    self.old += 1;
                    self.reorderings += 1;
                }
                Fate::Old | Fate::Young => {}
            }
            position += 1;
        }
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
            if let Some(index) = &mut self.index {
                index.rebuild(&self.samples);
            }
        }
    }

    /// Removes all samples and returns them.
    pub fn drain(&mut self) -> Vec<Sample> {
        self.old = 0;
        if let Some(index) = &mut self.index {
            index.clear();
        }
        std::mem::take(&mut self.samples)
    }

    /// Gives memory back that a set of this size does not need.
    pub fn shrink(&mut self) {
        if self.samples.capacity() > 2 * self.samples.len() + 1024 {
            self.samples.shrink_to(self.samples.len() * 5 / 4);
            if let Some(index) = &mut self.index {
                index.rebuild(&self.samples);
            }
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.samples.capacity() * size_of::<Sample>() + self.index.as_ref().map_or(0, AddressIndex::bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};
    use std::collections::HashMap;

    fn sample(address: u64, born: u32) -> Sample {
        let unreported = Readers::only(0);
        Sample { address, stack: StackId::EMPTY, class: ClassId(0), born, rate: RateId(0), seen: 0, unreported }
    }

    #[test]
    fn a_sample_is_three_words() {
        assert_eq!(size_of::<Sample>(), 24);
    }

    #[test]
    fn agrees_with_a_map_under_random_operations() {
        let mut random = SmallRng::seed_from_u64(3);
        let (mut set, mut model) = (LiveSet::by_address(), HashMap::new());
        for step in 0..200_000u32 {
            // Few enough addresses that inserts, hits and misses all happen often.
            let address = 0x7f00_0000_0000 + random.random_range(0..6_000u64) * 40;
            if random.random::<bool>() {
                assert_eq!(set.remove(address).map(|s| s.born), model.remove(&address));
            } else if let std::collections::hash_map::Entry::Vacant(free) = model.entry(address) {
                free.insert(step);
                assert!(set.insert(sample(address, step)).is_none());
            }
            assert_eq!(set.len(), model.len());
            assert!(set.may_have(address) || !model.contains_key(&address));
        }
        for (&address, &born) in &model {
            assert_eq!(set.remove(address).map(|s| s.born), Some(born));
        }
        assert!(set.is_empty());
    }

    #[test]
    fn samples_are_found_at_their_new_addresses_after_a_move() {
        let mut set = LiveSet::by_address();
        for i in 0..100 {
            set.insert(sample(i * 40, i as u32));
        }
        set.relocate(|address| if address % 80 == 0 { address + 1_000_000 } else { address });
        assert!(set.remove(80).is_none());
        assert_eq!(set.remove(40).map(|s| s.born), Some(1));
        assert_eq!(set.remove(1_000_080).map(|s| s.born), Some(2));
    }

    #[test]
    fn walking_downwards_visits_every_sample_in_spite_of_removals() {
        let mut set = LiveSet::by_address();
        for i in 0..1000 {
            set.insert(sample(i * 40, i as u32));
        }
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
    fn an_address_that_is_allocated_again_returns_the_sample_that_died() {
        let mut set = LiveSet::by_address();
        set.insert(sample(40, 1));
        assert_eq!(set.insert(sample(40, 2)).map(|s| s.born), Some(1));
        assert_eq!((set.len(), set.remove(40).map(|s| s.born)), (1, Some(2)));
    }

    #[test]
    fn collections_find_the_dead_and_ask_about_the_old_only_when_major() {
        let mut random = SmallRng::seed_from_u64(5);
        let mut set = LiveSet::by_position();
        let (mut alive, mut next) = (HashMap::<u64, bool>::new(), 0u64);
        for round in 0..300 {
            for _ in 0..random.random_range(0..50) {
                set.insert(sample(next, 0));
                alive.insert(next, false);
                next += 1;
            }
            let major = round % 5 == 0;
            let mut dead = Vec::new();
            for (&address, old) in &mut alive {
                if (major || !*old) && random.random_range(0..4) == 0 {
                    dead.push(address);
                } else if random.random_range(0..3) == 0 {
                    *old = true;
                }
            }
            let mut buried = Vec::new();
            set.collect(
                major,
                |sample, known_old| match (dead.contains(&sample.address), alive[&sample.address]) {
                    (true, _) => Fate::Dead,
                    (_, true) if !known_old => Fate::Old,
                    _ => Fate::Young,
                },
                |sample| buried.push(sample.address),
            );
            buried.sort_unstable();
            dead.sort_unstable();
            assert_eq!(buried, dead);
            alive.retain(|address, _| !dead.contains(address));
            let mut left: Vec<_> = set.samples().iter().map(|sample| sample.address).collect();
            left.sort_unstable();
            let mut expected: Vec<_> = alive.keys().copied().collect();
            expected.sort_unstable();
            assert_eq!(left, expected);
        }
    }

    #[test]
    fn memory_per_sample_is_bounded() {
        let mut set = LiveSet::by_address();
        for i in 0..300_000u64 {
            set.insert(sample(i * 40, 0));
            assert!(i < 10_000 || set.bytes() <= 48 * set.len(), "{} at {i}", set.bytes());
        }
    }
}
