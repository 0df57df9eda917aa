//! Values that are stored once, known by a small id, and dropped with their last reference.

use crate::hash::{Map, map_bytes};
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::ops::Range;

/// Maps keys to ids `0..`, counting references. An id whose count returns to zero is free for another key.
#[derive(Debug)]
pub struct Interner<K> {
    slots: Vec<Slot<K>>,
    free: Vec<u32>,
    index: Map<K, u32>,
}

#[derive(Debug)]
struct Slot<K> {
    key: K,
    references: u32,
}

impl<K: Copy + Eq + Hash> Interner<K> {
    /// An empty table; it allocates nothing.
    pub fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), index: Map::default() }
    }

    /// The id of `key` with one reference more, and whether the key was new.
    pub fn acquire(&mut self, key: K) -> (u32, bool) {
        match self.index.entry(key) {
            Entry::Occupied(known) => {
                let id = *known.get();
                self.slots[id as usize].references += 1;
                (id, false)
            }
            Entry::Vacant(vacant) => {
                let slot = Slot { key, references: 1 };
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
                vacant.insert(id);
                (id, true)
            }
        }
    }

    /// Adds a reference to an id that has one already.
    pub fn retain(&mut self, id: u32) {
        self.slots[id as usize].references += 1;
    }

    /// Gives back a reference. Returns the key if it was the last one; the id is then invalid.
    pub fn release(&mut self, id: u32) -> Option<K> {
        let slot = &mut self.slots[id as usize];
        debug_assert!(slot.references > 0, "released more often than acquired");
        slot.references -= 1;
        if slot.references > 0 {
            return None;
        }
        let key = slot.key;
        // A detached id no longer owns its key, which may by now stand for another.
        if self.index.get(&key) == Some(&id) {
            self.index.remove(&key);
        }
        self.free.push(id);
        Some(key)
    }

    /// Keeps the id but forgets which key it stood for: the same key gets a new id from now on.
    pub fn detach(&mut self, id: u32) {
        let key = self.slots[id as usize].key;
        if self.index.get(&key) == Some(&id) {
            self.index.remove(&key);
        }
    }

    /// The key of a referenced id.
    pub fn key(&self, id: u32) -> K {
        self.slots[id as usize].key
    }

    /// The keys in use and their ids, except detached ones, in no particular order.
    pub fn attached(&self) -> impl Iterator<Item = (K, u32)> {
        self.index.iter().map(|(&key, &id)| (key, id))
    }

    /// The keys of the referenced ids in a range, detached ones included.
    pub fn keys_of(&self, ids: Range<usize>) -> impl Iterator<Item = K> {
        let end = ids.end.min(self.slots.len());
        self.slots[ids.start.min(end)..end].iter().filter(|slot| slot.references > 0).map(|slot| slot.key)
    }

    /// One past the highest id ever given out.
    pub fn id_bound(&self) -> u32 {
        self.slots.len() as u32
    }

    /// How many ids are referenced.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether no id is referenced.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives memory back after many keys were dropped.
    pub fn shrink(&mut self) {
        if self.index.capacity() > 4 * self.index.len() + 64 {
            self.index.shrink_to(2 * self.index.len());
        }
        if self.free.capacity() > 4 * self.free.len() + 64 {
            self.free.shrink_to(2 * self.free.len());
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<K>>() + self.free.capacity() * size_of::<u32>() + map_bytes(&self.index)
    }
}

impl<K: Copy + Eq + Hash> Default for Interner<K> {
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
    fn a_detached_key_gets_a_new_id() {
        let mut interner = Interner::<u64>::new();
        let (old, _) = interner.acquire(7);
        interner.detach(old);
        let (new, fresh) = interner.acquire(7);
        assert!(fresh && new != old);
        interner.release(old);
        assert_eq!(interner.acquire(7), (new, false));
    }
}
