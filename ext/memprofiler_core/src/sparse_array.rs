//! Values stored by id.
//!
//! A `Vec` would be moved whenever it grows, and freed all at once, while the GVL is held.

/// A sparse array indexed by id, a small number. It grows by one chunk at a time and never moves its values.
#[derive(Debug)]
pub struct SparseArray<T> {
    chunks: Vec<Option<Chunk<T>>>,
}

#[derive(Debug)]
struct Chunk<T> {
    values: Box<[Option<T>]>,
    /// How many values there are.
    count: usize,
}

const CHUNK: usize = 4096;

impl<T> SparseArray<T> {
    /// The value for `id`.
    #[inline]
    pub fn get(&self, id: usize) -> Option<&T> {
        self.chunks.get(id / CHUNK)?.as_ref()?.values[id % CHUNK].as_ref()
    }

    /// Sets the value for `id`.
    pub fn insert(&mut self, id: usize, value: T) {
        let (chunk, index) = (id / CHUNK, id % CHUNK);
        if chunk >= self.chunks.len() {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let chunk = self.chunks[chunk].get_or_insert_with(Chunk::new);
        if chunk.values[index].replace(value).is_none() {
            chunk.count += 1;
        }
    }

    /// Drops the last chunk. Returns whether there was one.
    pub fn drop_chunk(&mut self) -> bool {
        self.chunks.pop().is_some()
    }

    /// Removes the value for `id`, and with the last value of a chunk its memory.
    pub fn remove(&mut self, id: usize) -> Option<T> {
        let place = self.chunks.get_mut(id / CHUNK)?;
        let chunk = place.as_mut()?;
        let removed = chunk.values[id % CHUNK].take()?;
        chunk.count -= 1;
        if chunk.count == 0 {
            *place = None;
        }
        Some(removed)
    }
}

impl<T> Chunk<T> {
    fn new() -> Self {
        Self { values: std::iter::repeat_with(|| None).take(CHUNK).collect(), count: 0 }
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
    fn a_chunk_is_freed_with_its_last_value() {
        let mut array = SparseArray::default();
        (0..3).for_each(|id| array.insert(id, id));
        array.insert(1, 10);
        assert_eq!([2, 0, 0, CHUNK].map(|id| array.remove(id)), [Some(2), Some(0), None, None]);
        assert_eq!((array.get(0), array.get(1)), (None, Some(&10)));
        assert!(array.chunks[0].is_some());
        assert_eq!(array.remove(1), Some(10));
        assert!(array.chunks[0].is_none());
        array.insert(CHUNK, 1);
        assert!(array.drop_chunk() && array.get(CHUNK).is_none() && array.get(1).is_none());
        array.insert(1, 11);
        assert_eq!(array.get(1), Some(&11));
    }
}
