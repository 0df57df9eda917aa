//! Values stored once, identified by a small id, and dropped with their last reference.
//!
//! Interning crates either never drop a value, or count references through pointers that are freed one by one. Here ids
//! are reused, and the index grows in parts, since a hook waits for it.

use crate::hash::FixedState;
use crate::id_index::IdIndex;
use std::hash::{BuildHasher, Hash};
use std::ops::Range;

/// Maps keys to ids `0..` and counts references. Once its count is zero, an id can be reused for another key. Each id
/// also carries a note for the owner's use.
#[derive(Debug)]
pub struct Interner<K, N = ()> {
    slots: Vec<Slot<K, N>>,
    free: Vec<u32>,
    index: IdIndex,
    hasher: FixedState,
}

#[derive(Debug)]
struct Slot<K, N> {
    key: K,
    references: u32,
    note: N,
}

impl<K: Copy + Eq + Hash, N: Copy + Default> Interner<K, N> {
    /// An empty table.
    pub fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), index: IdIndex::new(), hasher: FixedState::default() }
    }

    /// Reserves room for `more` keys; false if there is no memory for them. This leaves out the index, which grows in
    /// small parts.
    #[inline]
    pub fn try_reserve(&mut self, more: usize) -> bool {
        let spare = self.slots.capacity() - self.slots.len();
        spare >= more || self.slots.try_reserve(more.saturating_sub(self.free.len())).is_ok()
    }

    /// The id of `key` with one more reference, and whether the key is new.
    #[inline]
    pub fn acquire(&mut self, key: K) -> (u32, bool) {
        let hash = self.hasher.hash_one(key);
        match self.find(hash, key) {
            Some(id) => {
                self.slots[id as usize].references += 1;
                (id, false)
            }
            None => (self.add(hash, key), true),
        }
    }

    #[inline]
    fn find(&self, hash: u64, key: K) -> Option<u32> {
        self.index.find(hash, |id| self.slots[id as usize].key == key)
    }

    fn add(&mut self, hash: u64, key: K) -> u32 {
        let slot = Slot { key, references: 1, note: N::default() };
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = slot;
                id
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        self.index.insert(hash, id, |id| self.hasher.hash_one(self.slots[id as usize].key));
        id
    }

    /// Whether `key` has an id.
    pub fn contains(&self, key: K) -> bool {
        self.find(self.hasher.hash_one(key), key).is_some()
    }

    /// Adds a reference to an id that already has one.
    pub fn retain(&mut self, id: u32) {
        self.slots[id as usize].references += 1;
    }

    /// Whether a referenced id has more than one reference.
    pub fn is_shared(&self, id: u32) -> bool {
        self.slots[id as usize].references > 1
    }

    /// Releases a reference. Returns the key if that was the last one; the id is then invalid.
    pub fn release(&mut self, id: u32) -> Option<K> {
        let slot = &mut self.slots[id as usize];
        debug_assert!(slot.references > 0, "released more often than acquired");
        slot.references -= 1;
        if slot.references > 0 {
            return None;
        }
        let key = slot.key;
        // A detached id is not in the index, where its key may now have another id.
        self.index.remove(self.hasher.hash_one(key), id);
        // If there is no memory to remember the slot, it is never reused.
        if self.free.try_reserve(1).is_ok() {
            self.free.push(id);
        }
        Some(key)
    }

    /// Gives a referenced id another key, without indexing it: looking up either key no longer finds this id.
    pub fn detach(&mut self, id: u32, key: K) {
        let slot = &mut self.slots[id as usize];
        self.index.remove(self.hasher.hash_one(slot.key), id);
        slot.key = key;
    }

    /// The key of a referenced id.
    pub fn key(&self, id: u32) -> K {
        self.slots[id as usize].key
    }

    /// The key of `id`, if that is referenced.
    #[inline]
    pub fn get(&self, id: u32) -> Option<K> {
        self.slots.get(id as usize).filter(|slot| slot.references > 0).map(|slot| slot.key)
    }

    /// The note of a referenced id; initially the default.
    #[inline]
    pub fn note(&self, id: u32) -> N {
        self.slots[id as usize].note
    }

    /// Sets the note of a referenced id.
    #[inline]
    pub fn set_note(&mut self, id: u32, note: N) {
        self.slots[id as usize].note = note;
    }

    /// Detaches the ids whose keys `moved` changes. Returns whether there were any.
    pub fn relocate(&mut self, mut moved: impl FnMut(K) -> K) -> bool {
        let mut any = false;
        for id in 0..self.id_bound() {
            let Slot { key, references, .. } = self.slots[id as usize];
            if references == 0 {
                continue;
            }
            let now = moved(key);
            if now != key {
                self.detach(id, now);
                any = true;
            }
        }
        any
    }

    /// The keys of the referenced ids in a range, including detached ones.
    pub fn keys_of(&self, ids: Range<usize>) -> impl Iterator<Item = K> {
        let end = ids.end.min(self.slots.len());
        self.slots[ids.start.min(end)..end].iter().filter(|slot| slot.references > 0).map(|slot| slot.key)
    }

    /// One past the highest id ever used.
    pub fn id_bound(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The number of referenced ids.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether no id is referenced.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Frees memory after many keys were dropped, in one part of the [index](IdIndex::PARTS).
    pub fn shrink(&mut self, part: usize) {
        self.index.shrink(part, |id| self.hasher.hash_one(self.slots[id as usize].key));
        if self.free.capacity() > 4 * self.free.len() + 64 {
            self.free.shrink_to(2 * self.free.len());
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<K, N>>() + self.free.capacity() * size_of::<u32>() + self.index.bytes()
    }
}

impl<K: Copy + Eq + Hash, N: Copy + Default> Default for Interner<K, N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_share_an_id() {
        let mut interner = Interner::<u64>::new();
        let (id, fresh) = interner.acquire(7);
        assert!(fresh);
        assert_eq!(interner.acquire(7), (id, false));
        assert_eq!(interner.len(), 1);
    }

    #[test]
    fn the_last_release_frees_the_id_for_reuse() {
        let mut interner = Interner::<u64>::new();
        let (id, _) = interner.acquire(7);
        interner.retain(id);
        assert_eq!(interner.release(id), None);
        assert_eq!(interner.release(id), Some(7));
        assert_eq!(interner.acquire(8), (id, true));
    }

    #[test]
    fn a_note_is_dropped_with_its_key() {
        let mut interner = Interner::<u64, u32>::new();
        let (id, _) = interner.acquire(7);
        assert_eq!(interner.note(id), 0);
        interner.set_note(id, 5);
        interner.acquire(7);
        assert_eq!(interner.note(id), 5);
        assert_eq!(interner.release(id), None);
        assert_eq!((interner.release(id), interner.get(id)), (Some(7), None));
        assert_eq!((interner.acquire(8), interner.note(id), interner.get(id)), ((id, true), 0, Some(8)));
    }

    #[test]
    fn a_detached_id_stands_for_its_new_key_but_is_not_found() {
        let mut interner = Interner::<u64>::new();
        let (old, _) = interner.acquire(7);
        interner.detach(old, 9);
        let (new, fresh) = interner.acquire(7);
        assert!(fresh && new != old);
        assert_eq!((interner.key(old), interner.contains(9)), (9, false));
        let (other, fresh) = interner.acquire(9);
        assert!(fresh && other != old);
        assert_eq!(interner.release(old), Some(9));
        assert_eq!((interner.acquire(7), interner.acquire(9)), ((new, false), (other, false)));
    }

    #[test]
    fn a_moved_value_is_found_only_by_its_new_key() {
        let mut interner = Interner::<u64>::new();
        let ids = [1, 2, 3].map(|key| interner.acquire(key).0);
        interner.release(ids[2]);
        assert!(interner.relocate(|key| if key == 1 { 10 } else { key }));
        assert_eq!((interner.key(ids[0]), interner.contains(1)), (10, false));
        assert_eq!(interner.keys_of(0..usize::MAX).collect::<Vec<_>>(), [10, 2]);
        assert!(!interner.relocate(|key| key));
    }
}
