//! Sums of values by key.

use crate::hash::FixedState;
use crate::id_index::IdIndex;
use std::hash::{BuildHasher, Hash};
use std::ops::AddAssign;

/// Values added up by key, in the order in which the keys came. Made for keys that come in runs, and for use where
/// nothing may take long: it grows by one chunk at a time, and is emptied entry by entry.
#[derive(Debug)]
pub struct Sums<K, V> {
    chunks: Vec<Vec<(K, V)>>,
    index: IdIndex,
    hasher: FixedState,
    /// The position and key of a run, and what is still to be added for it.
    latest: Option<(usize, K, V)>,
}

const CHUNK: usize = 1024;

impl<K: Copy + Eq + Hash, V: Copy + AddAssign> Sums<K, V> {
    /// Nothing.
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
        let Self { chunks, index, hasher, latest } = self;
        let hash = hasher.hash_one(key);
        let key_of = |chunks: &[Vec<(K, V)>], id: u32| chunks[id as usize / CHUNK][id as usize % CHUNK].0;
        if let Some(id) = index.find(hash, |id| key_of(chunks, id) == key) {
            *latest = Some((id as usize, key, value));
            return false;
        }
        let id = index.len();
        if id % CHUNK == 0 {
            chunks.push(Vec::with_capacity(CHUNK));
        }
        chunks[id / CHUNK].push((key, value));
        index.insert(hash, id as u32, |id| hasher.hash_one(key_of(chunks, id)));
        true
    }

    /// Adds what `latest` still holds.
    fn settle(&mut self) {
        if let Some((position, _, value)) = self.latest.take() {
            self.chunks[position / CHUNK][position % CHUNK].1 += value;
        }
    }

    /// The entry that was added as number `position`.
    pub fn entry(&self, position: usize) -> Option<(K, V)> {
        let &(key, mut value) = self.chunks.get(position / CHUNK)?.get(position % CHUNK)?;
        if let Some((latest, _, more)) = self.latest {
            if latest == position {
                value += more;
            }
        }
        Some((key, value))
    }

    /// The entries, taken out one after the other, the last first.
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

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.chunks.len() * CHUNK * size_of::<(K, V)>() + self.index.bytes()
    }
}

impl<K: Copy + Eq + Hash, V: Copy + AddAssign> Default for Sums<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

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
