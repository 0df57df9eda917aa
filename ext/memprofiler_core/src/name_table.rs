//! Names that outlive what they name.

use crate::hash::SecretState;
use crate::id_index::IdIndex;
use std::hash::{BuildHasher, Hash};
use std::ops::Range;
use std::sync::Arc;

/// Maps names to ids. [`prune`](Self::prune) drops the names whose ids are no longer in use.
#[derive(Debug)]
pub struct NameTable<T: ?Sized> {
    names: Vec<Option<Name<T>>>,
    free: Vec<u32>,
    index: IdIndex,
    hasher: SecretState,
}

#[derive(Debug)]
struct Name<T: ?Sized> {
    text: Arc<T>,
    hash: u64,
}

impl<T: ?Sized + Eq + Hash> NameTable<T> {
    /// An empty table.
    pub fn new() -> Self {
        Self { names: Vec::new(), free: Vec::new(), index: IdIndex::new(), hasher: SecretState::default() }
    }

    /// The id of `name`.
    pub fn id(&mut self, name: Arc<T>) -> u32 {
        let hash = self.hasher.hash_one(&*name);
        if let Some(id) = self.index_of(hash, &name) {
            return id;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.names.push(None);
            (self.names.len() - 1) as u32
        });
        self.names[id as usize] = Some(Name { text: name, hash });
        self.index.insert(hash, id, |id| self.names[id as usize].as_ref().map_or(0, |name| name.hash));
        id
    }

    /// The id of `name`, if it has one.
    pub fn find(&self, name: &T) -> Option<u32> {
        self.index_of(self.hasher.hash_one(name), name)
    }

    fn index_of(&self, hash: u64, name: &T) -> Option<u32> {
        self.index.find(hash, |id| self.names[id as usize].as_ref().is_some_and(|known| *known.text == *name))
    }

    /// The name behind an id in use.
    pub fn get(&self, id: u32) -> Option<&Arc<T>> {
        self.names.get(id as usize)?.as_ref().map(|name| &name.text)
    }

    /// One past the highest id ever used.
    pub fn id_bound(&self) -> usize {
        self.names.len()
    }

    /// Drops the names of the ids in a range that are not in use.
    pub fn prune(&mut self, ids: Range<usize>, is_used: impl Fn(u32) -> bool) {
        let end = ids.end.min(self.names.len());
        for id in ids.start.min(end)..end {
            if is_used(id as u32) {
                continue;
            }
            if let Some(name) = self.names[id].take() {
                self.index.remove(name.hash, id as u32);
                self.free.push(id as u32);
            }
        }
    }

    /// The number of names.
    pub fn len(&self) -> usize {
        self.names.len() - self.free.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held; `content` returns those of one name.
    pub fn bytes(&self, content: impl Fn(&T) -> usize) -> usize {
        self.names.capacity() * size_of::<Option<Name<T>>>()
            + self.free.capacity() * size_of::<u32>()
            + self.index.bytes()
            + self.names.iter().flatten().map(|name| content(&name.text)).sum::<usize>()
    }
}

impl<T: ?Sized + Eq + Hash> Default for NameTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_share_an_id() {
        let mut table = NameTable::<str>::new();
        assert_eq!(table.id("a".into()), table.id("a".into()));
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn unused_names_make_room_for_others() {
        let mut table = NameTable::<str>::new();
        let (a, b) = (table.id("a".into()), table.id("b".into()));
        table.prune(0..usize::MAX, |id| id == b);
        assert_eq!(table.get(a), None);
        assert_eq!(table.get(b).map(|name| &**name), Some("b"));
        assert_eq!(table.id("c".into()), a);
    }
}
