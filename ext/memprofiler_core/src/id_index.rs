//! Finds ids by the hash of what they stand for.
//!
//! An ordinary hash table, from the standard library or a crate, rehashes everything at once when it grows. A hook
//! cannot wait for that.

use hashbrown::HashTable;

/// A hash table that holds ids only. The owner stores what they stand for, once, and passes it in for comparing and
/// hashing. The table is split into parts that grow independently, because somebody waits while one grows: a hook, or a
/// flush that holds the GVL.
#[derive(Debug)]
pub struct IdIndex {
    parts: Box<[HashTable<u32>; Self::PARTS]>,
}

impl IdIndex {
    /// The number of parts. A part of an index with a million entries grows in half a millisecond.
    pub const PARTS: usize = 64;

    /// An empty index.
    pub fn new() -> Self {
        Self { parts: Box::new([const { HashTable::new() }; Self::PARTS]) }
    }

    /// The id with this hash that `is_it` accepts.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        self.parts[part(hash)].find(hash, |&id| is_it(id)).copied()
    }

    /// Adds an id, which must not be in the index. `hash_of` returns the hash of an id that is.
    pub fn insert(&mut self, hash: u64, id: u32, hash_of: impl Fn(u32) -> u64) {
        let part = &mut self.parts[part(hash)];
        if part.len() == part.capacity() && part.len() < part.num_buckets() / 4 * 3 {
            // The places of removed ids are not free, and the table would double if half of its own are taken.
            let mut same = HashTable::with_capacity(part.num_buckets() / 8 * 7);
            for &id in &*part {
                same.insert_unique(hash_of(id), id, |&id| hash_of(id));
            }
            *part = same;
        }
        part.insert_unique(hash, id, |&id| hash_of(id));
    }

    /// Removes an id. Returns whether it was there.
    pub fn remove(&mut self, hash: u64, id: u32) -> bool {
        match self.parts[part(hash)].find_entry(hash, |&other| other == id) {
            Ok(entry) => {
                entry.remove();
                true
            }
            Err(_) => false,
        }
    }

    /// All ids, in no particular order.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.parts.iter().flatten().copied()
    }

    /// Frees memory that part number `part` of [`PARTS`](Self::PARTS) no longer needs.
    pub fn shrink(&mut self, part: usize, hash_of: impl Fn(u32) -> u64) {
        let part = &mut self.parts[part];
        if part.capacity() > 4 * part.len() + 64 {
            part.shrink_to(2 * part.len(), |&id| hash_of(id));
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.parts) + self.parts.iter().map(HashTable::allocation_size).sum::<usize>()
    }
}

impl Default for IdIndex {
    fn default() -> Self {
        Self::new()
    }
}

/// Uses hash bits that the tables ignore: they use the highest seven and the lowest.
#[inline]
fn part(hash: u64) -> usize {
    (hash >> 50) as usize % IdIndex::PARTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::FixedState;
    use std::hash::BuildHasher;

    fn hash_of(id: u32) -> u64 {
        FixedState::default().hash_one(id)
    }

    #[test]
    fn finds_what_was_inserted_and_not_removed() {
        let mut index = IdIndex::new();
        (0..10_000).for_each(|id| index.insert(hash_of(id), id, hash_of));
        for id in (0..10_000).step_by(3) {
            assert!(index.remove(hash_of(id), id));
            assert!(!index.remove(hash_of(id), id));
        }
        for id in 0..10_000 {
            assert_eq!(index.find(hash_of(id), |other| other == id).is_none(), id % 3 == 0);
        }
        assert_eq!(index.ids().count(), 6666);
    }

    #[test]
    fn entries_spread_over_all_parts() {
        let mut index = IdIndex::new();
        (0..64_000).for_each(|id| index.insert(hash_of(id), id, hash_of));
        assert!(index.parts.iter().all(|part| (800..1200).contains(&part.len())));
    }

    #[test]
    fn replacing_ids_takes_no_more_memory() {
        let mut index = IdIndex::new();
        (0..40_000).for_each(|id| index.insert(hash_of(id), id, hash_of));
        let before = index.bytes();
        for id in 40_000..160_000 {
            index.insert(hash_of(id), id, hash_of);
            assert!(index.remove(hash_of(id - 40_000), id - 40_000));
        }
        assert_eq!((index.ids().count(), index.bytes()), (40_000, before));
        assert!((140_000..160_000).all(|id| index.find(hash_of(id), |other| other == id).is_some()));
    }

    #[test]
    fn shrinking_returns_memory_freed_by_removals() {
        let mut index = IdIndex::new();
        (0..100_000).for_each(|id| index.insert(hash_of(id), id, hash_of));
        (100..100_000).for_each(|id| assert!(index.remove(hash_of(id), id)));
        let full = index.bytes();
        (0..IdIndex::PARTS).for_each(|part| index.shrink(part, hash_of));
        assert!(index.bytes() < full / 10);
        assert!((0..100).all(|id| index.find(hash_of(id), |other| other == id).is_some()));
    }
}
