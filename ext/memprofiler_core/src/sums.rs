//! Sums of values by key.
//!
//! A map of the standard library or of indexmap would not do: it grows and is freed all at once, while a hook or the
//! GVL waits.

use crate::hash::FixedState;
use crate::id_index::IdIndex;
use crate::readers::Readers;
use crate::reservoir::ClassId;
use crate::stack_tree::StackId;
use crate::stratum::Stratum;
use std::hash::{BuildHasher, Hash};
use std::ops::AddAssign;

/// Values summed by key, in the order of the keys' first appearance. Made for runs of equal keys, and for places where
/// nothing may take long: it grows by one chunk at a time, and is emptied entry by entry.
#[derive(Debug)]
pub struct Sums<K, V> {
    chunks: Vec<Vec<(K, V)>>,
    index: IdIndex,
    hasher: FixedState,
    /// The position and key of the current run, and what still has to be added for it.
    latest: Option<(usize, K, V)>,
}

/// So few that the tally's chunks are small: where memory runs out there may be none for a mapping.
const CHUNK: usize = 256;

impl<K: Copy + Eq + Hash, V: Copy + Default + AddAssign> Sums<K, V> {
    /// An empty sum.
    pub fn new() -> Self {
        Self { chunks: Vec::new(), index: IdIndex::new(), hasher: FixedState::default(), latest: None }
    }

    /// Adds to the sum for `key`. Returns whether the key is new.
    #[inline]
    pub fn add(&mut self, key: K, value: V) -> bool {
        if let Some((_, latest, sum)) = &mut self.latest {
            if *latest == key {
                *sum += value;
                return false;
            }
        }
        self.add_other(key, value)
    }

    fn add_other(&mut self, key: K, value: V) -> bool {
        self.settle();
        let hash = self.hasher.hash_one(key);
        let key_of = |chunks: &[Vec<(K, V)>], id: u32| chunks[id as usize / CHUNK][id as usize % CHUNK].0;
        if let Some(id) = self.index.find(hash, |id| key_of(&self.chunks, id) == key) {
            self.latest = Some((id as usize, key, value));
            return false;
        }
        let end = self.len();
        if end % CHUNK == 0 {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        self.chunks[end / CHUNK].push((key, value));
        self.index.insert(hash, end as u32, |id| self.hasher.hash_one(key_of(&self.chunks, id)));
        self.latest = Some((end, key, V::default()));
        true
    }

    /// Adds what `latest` still holds.
    fn settle(&mut self) {
        if let Some((position, _, value)) = self.latest.take() {
            self.chunks[position / CHUNK][position % CHUNK].1 += value;
        }
    }

    /// The entry at `position`. Entries stay in place unless one before them is taken out.
    pub fn entry(&self, position: usize) -> Option<(K, V)> {
        let &(key, mut value) = self.chunks.get(position / CHUNK)?.get(position % CHUNK)?;
        if let Some((latest, _, more)) = self.latest {
            if latest == position {
                value += more;
            }
        }
        Some((key, value))
    }

    /// The key of the entry at `position`.
    pub fn key(&self, position: usize) -> Option<&K> {
        Some(&self.chunks.get(position / CHUNK)?.get(position % CHUNK)?.0)
    }

    /// Removes and returns the entry at `position`; the last entry takes its place.
    pub fn take(&mut self, position: usize) -> Option<(K, V)> {
        self.settle();
        let taken = self.entry(position)?;
        let last = self.chunks.last_mut()?.pop()?;
        if self.chunks.last().is_some_and(Vec::is_empty) {
            self.chunks.pop();
        }
        let end = self.len();
        self.index.remove(self.hasher.hash_one(taken.0), position as u32);
        if position < end {
            let hash = self.hasher.hash_one(last.0);
            self.index.remove(hash, end as u32);
            self.chunks[position / CHUNK][position % CHUNK] = last;
            let Self { chunks, index, hasher, .. } = self;
            index.insert(hash, position as u32, |id| {
                hasher.hash_one(chunks[id as usize / CHUNK][id as usize % CHUNK].0)
            });
        } else if end == 0 {
            // Frees its memory.
            self.index = IdIndex::new();
        }
        Some(taken)
    }

    /// The entries, removed one by one, last first.
    pub fn into_entries(mut self) -> impl Iterator<Item = (K, V)> + use<K, V> {
        self.settle();
        let mut chunks = self.chunks;
        std::iter::from_fn(move || {
            while chunks.last().is_some_and(Vec::is_empty) {
                chunks.pop();
            }
            chunks.last_mut()?.pop()
        })
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.chunks.len() * CHUNK * size_of::<(K, V)>() + self.index.bytes()
    }
}

impl<K: Copy + Eq + Hash, V: Copy + Default + AddAssign> Default for Sums<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Objects of one stack and class, as estimates for the whole program.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Allocated {
    /// The number of objects.
    pub objects: f64,
    /// Their size in bytes.
    pub bytes: f64,
}

impl AddAssign for Allocated {
    fn add_assign(&mut self, other: Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
    }
}

/// The key of a tally: objects of one stack, class and stratum that these readers do not know of yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TallyKey {
    /// Where they were allocated.
    pub stack: StackId,
    /// Their class.
    pub class: ClassId,
    /// Who does not know of them.
    pub readers: Readers,
    /// Which of them are added up.
    pub stratum: Stratum,
}

/// What was allocated and died before a flush could see it, summed by stack, class, readers and stratum. So
/// its size depends on the number of allocation sites, not of objects. Each entry holds a reference to its stack and
/// class.
pub type Tally = Sums<TallyKey, Allocated>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_equal_keys_are_summed() {
        let mut sums = Sums::new();
        assert!(sums.is_empty());
        assert!(sums.add("a", 1));
        assert!(!sums.add("a", 10));
        assert!(!sums.add("a", 100));
        assert!(sums.add("b", 2));
        assert!(!sums.add("a", 1000));
        assert_eq!(
            (sums.len(), sums.entry(0), sums.entry(1), sums.entry(2)),
            (2, Some(("a", 1111)), Some(("b", 2)), None)
        );
        assert_eq!(sums.into_entries().collect::<Vec<_>>(), [("b", 2), ("a", 1111)]);
    }

    #[test]
    fn the_last_entry_replaces_a_removed_one() {
        let mut sums = Sums::new();
        (0..3000).for_each(|key| assert!(sums.add(key, 1)));
        sums.add(5, 10);
        assert_eq!((sums.take(5), sums.take(5), sums.take(2998)), (Some((5, 11)), Some((2999, 1)), None));
        assert!(!sums.add(2998, 1) && sums.add(5, 7));
        let mut position = sums.len();
        let mut left = std::collections::HashMap::new();
        while position > 0 {
            position -= 1;
            left.extend(sums.take(position));
            // Entries added meanwhile are not visited again.
            sums.add(10_000 + position, 1);
        }
        assert_eq!((left.len(), left[&5], left[&2998], left.get(&2999)), (2999, 7, 2, None));
        assert_eq!((sums.len(), sums.entry(0)), (2999, Some((10_001, 1))));
    }

    #[test]
    fn agrees_with_a_map() {
        let mut sums = Sums::new();
        let mut expected = std::collections::HashMap::new();
        for step in 0..100_000u64 {
            let key = step.wrapping_mul(step) % 5003;
            assert_eq!(sums.add(key, step), !expected.contains_key(&key));
            *expected.entry(key).or_insert(0) += step;
        }
        assert_eq!(sums.len(), expected.len());
        assert_eq!(sums.into_entries().collect::<std::collections::HashMap<_, _>>(), expected);
    }
}
