//! Names that outlive what they name.

use crate::hash::{Map, map_bytes};
use std::hash::Hash;
use std::sync::Arc;

/// Maps names to ids. Names are dropped by [`retain`](Self::retain), which is told the ids still in use.
#[derive(Debug)]
pub struct NameTable<T: ?Sized> {
    names: Vec<Option<Arc<T>>>,
    free: Vec<u32>,
    index: Map<Arc<T>, u32>,
}

impl<T: ?Sized + Eq + Hash> NameTable<T> {
    /// An empty table.
    pub fn new() -> Self {
        Self { names: Vec::new(), free: Vec::new(), index: Map::default() }
    }

    /// The id of `name`.
    pub fn id(&mut self, name: Arc<T>) -> u32 {
        if let Some(&id) = self.index.get(&name) {
            return id;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.names.push(None);
            (self.names.len() - 1) as u32
        });
        self.names[id as usize] = Some(Arc::clone(&name));
        self.index.insert(name, id);
        id
    }

    /// The name behind an id in use.
    pub fn get(&self, id: u32) -> Option<&Arc<T>> {
        self.names.get(id as usize)?.as_ref()
    }

    /// Drops all names whose ids are not among `used`.
    pub fn retain(&mut self, used: impl Iterator<Item = u32>) {
        let mut keep = vec![false; self.names.len()];
        for id in used {
            if let Some(slot) = keep.get_mut(id as usize) {
                *slot = true;
            }
        }
        for (id, keep) in keep.into_iter().enumerate() {
            if !keep && let Some(name) = self.names[id].take() {
                self.index.remove(&name);
                self.free.push(id as u32);
            }
        }
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Bytes held; `content` gives those of one name.
    pub fn bytes(&self, content: impl Fn(&T) -> usize) -> usize {
        self.names.capacity() * size_of::<Option<Arc<T>>>()
            + map_bytes(&self.index)
            + self.index.keys().map(|name| content(name)).sum::<usize>()
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
        table.retain([b].into_iter());
        assert_eq!(table.get(a), None);
        assert_eq!(table.get(b).map(|name| &**name), Some("b"));
        assert_eq!(table.id("c".into()), a);
    }
}
