//! Values stored once and numbered.
//!
//! indexmap's `IndexSet` does the same with twice the memory for small values, since it stores hashes and 64-bit
//! positions, and it returns its values only as a copy; a profile keeps the `Vec` as it is.

use crate::hash::SecretState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};

/// Values numbered in order of first appearance. There must be fewer than 2^32.
#[derive(Debug)]
pub struct Table<T> {
    values: Vec<T>,
    numbers: HashTable<u32>,
    hasher: SecretState,
}

impl<T: Clone + Eq + Hash> Table<T> {
    /// The number of `value`, which is added if it is new.
    pub fn id(&mut self, value: &T) -> u32 {
        self.id_or(value, || value.clone())
    }

    /// The number of the value that equals `key`; if there is none, `make` creates it.
    pub fn id_or<Q: ?Sized + Eq + Hash>(&mut self, key: &Q, make: impl FnOnce() -> T) -> u32
    where
        T: Borrow<Q>,
    {
        let Self { values, numbers, hasher } = self;
        let is_it = |&number: &u32| values[number as usize].borrow() == key;
        match numbers.entry(hasher.hash_one(key), is_it, |&number| hasher.hash_one(&values[number as usize])) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(vacant) => {
                let number = values.len() as u32;
                vacant.insert(number);
                values.push(make());
                number
            }
        }
    }

    /// The number of the value that equals `key`, if there is one.
    pub fn find<Q: ?Sized + Eq + Hash>(&self, key: &Q) -> Option<u32>
    where
        T: Borrow<Q>,
    {
        let is_it = |&number: &u32| self.values[number as usize].borrow() == key;
        self.numbers.find(self.hasher.hash_one(key), is_it).copied()
    }

    /// The values in order.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The values in order, without the index.
    pub fn into_values(self) -> Vec<T> {
        self.values
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { values: Vec::new(), numbers: HashTable::new(), hasher: SecretState::default() }
    }
}
