//! Values that are stored once and numbered.

use crate::hash::FixedState;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

/// Values numbered in order of their first appearance. There must be fewer than 2^32.
#[derive(Debug)]
pub struct Table<T, S = FixedState> {
    values: Vec<T>,
    index: HashMap<T, u32, S>,
}

impl<T: Clone + Eq + Hash, S: BuildHasher> Table<T, S> {
    /// The number of `value`, which is new if the table did not have it.
    pub fn id(&mut self, value: &T) -> u32 {
        self.id_or(value, || value.clone())
    }

    /// The number of the value that equals `key`; if there is none `make` makes it.
    pub fn id_or<Q: ?Sized + Eq + Hash>(&mut self, key: &Q, make: impl FnOnce() -> T) -> u32
    where
        T: Borrow<Q>,
    {
        if let Some(&id) = self.index.get(key) {
            return id;
        }
        let value = make();
        let id = self.values.len() as u32;
        self.values.push(value.clone());
        self.index.insert(value, id);
        id
    }

    /// The values in order.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The values in order, without the means to find their numbers.
    pub fn into_values(self) -> Vec<T> {
        self.values
    }
}

impl<T, S: Default> Default for Table<T, S> {
    fn default() -> Self {
        Self { values: Vec::new(), index: HashMap::default() }
    }
}
