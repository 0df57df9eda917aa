//! Values stored by id.
//!
//! A `Vec` would be moved whenever it grows, and freed all at once, while the GVL is held.

/// A sparse array indexed by id, a small number. It grows by one chunk at a time and never moves its values.
#[derive(Debug)]
pub struct SparseArray<T> {
    chunks: Vec<Option<Box<[Option<T>]>>>,
}

const CHUNK: usize = 4096;

impl<T> SparseArray<T> {
    /// The value for `id`.
    #[inline]
    pub fn get(&self, id: usize) -> Option<&T> {
        self.chunks.get(id / CHUNK)?.as_ref()?[id % CHUNK].as_ref()
    }

    /// Sets the value for `id`.
    pub fn insert(&mut self, id: usize, value: T) {
        let (chunk, index) = (id / CHUNK, id % CHUNK);
        if chunk >= self.chunks.len() {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let chunk = self.chunks[chunk].get_or_insert_with(|| std::iter::repeat_with(|| None).take(CHUNK).collect());
        chunk[index] = Some(value);
    }

    /// Removes the value for `id`.
    pub fn remove(&mut self, id: usize) -> Option<T> {
        self.chunks.get_mut(id / CHUNK)?.as_mut()?[id % CHUNK].take()
    }

    /// Drops the last chunk. Returns whether there was one.
    pub fn drop_chunk(&mut self) -> bool {
        self.chunks.pop().is_some()
    }
}

impl<T> Default for SparseArray<T> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_what_was_inserted_last() {
        let mut array = SparseArray::default();
        for id in [0, CHUNK - 1, CHUNK, 50 * CHUNK + 7] {
            assert_eq!(array.get(id), None);
            array.insert(id, id);
            array.insert(id, id + 1);
        }
        assert_eq!(array.get(50 * CHUNK + 7), Some(&(50 * CHUNK + 8)));
        assert_eq!((array.get(0), array.get(1)), (Some(&1), None));
        assert_eq!(array.get(49 * CHUNK), None);
    }

    #[test]
    fn values_are_removed_one_by_one_or_by_chunks() {
        let mut array = SparseArray::default();
        [0, 1, CHUNK, 3 * CHUNK].into_iter().for_each(|id| array.insert(id, id));
        assert_eq!([1, 1, 2, 2 * CHUNK].map(|id| array.remove(id)), [Some(1), None, None, None]);
        assert!(array.drop_chunk());
        assert_eq!([0, 1, CHUNK, 3 * CHUNK].map(|id| array.get(id).copied()), [Some(0), None, Some(CHUNK), None]);
        array.insert(3 * CHUNK, 7);
        assert_eq!((0..9).take_while(|_| array.drop_chunk()).count(), 4);
        assert_eq!(array.get(0), None);
    }
}
