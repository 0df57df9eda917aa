//! What was allocated and has died again before a flush could see it.

use crate::hash::{Map, map_bytes};
use crate::live_set::ClassId;
use crate::stack_tree::StackId;
use std::collections::hash_map::Entry;

/// Objects of one stack and class, as estimates for the whole program.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Allocated {
    /// How many.
    pub objects: f64,
    /// Their bytes.
    pub bytes: f64,
}

/// Sums per stack and class, so that its size depends on the number of places that allocate, not of objects. Each
/// entry holds a reference to its stack and class.
#[derive(Debug)]
pub struct Tally {
    sums: Map<(StackId, ClassId), Allocated>,
}

impl Tally {
    /// An empty tally.
    pub fn new() -> Self {
        Self { sums: Map::default() }
    }

    /// Adds objects. Returns whether the entry is new, and so has taken over the caller's references to stack and class.
    pub fn add(&mut self, stack: StackId, class: ClassId, allocated: Allocated) -> bool {
        match self.sums.entry((stack, class)) {
            Entry::Occupied(mut known) => {
                known.get_mut().objects += allocated.objects;
                known.get_mut().bytes += allocated.bytes;
                false
            }
            Entry::Vacant(vacant) => {
                vacant.insert(allocated);
                true
            }
        }
    }

    /// Empties the tally; the caller takes over the references. The order depends on the keys only.
    pub fn drain(&mut self) -> Vec<(StackId, ClassId, Allocated)> {
        let mut entries: Vec<_> = self.sums.drain().map(|((stack, class), sum)| (stack, class, sum)).collect();
        entries.sort_unstable_by_key(|&(stack, class, _)| (stack, class));
        entries
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        map_bytes(&self.sums)
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_are_summed() {
        let mut tally = Tally::new();
        let one = Allocated { objects: 1.0, bytes: 40.0 };
        assert!(tally.add(StackId::EMPTY, ClassId(1), one));
        assert!(!tally.add(StackId::EMPTY, ClassId(1), one));
        assert!(tally.add(StackId::EMPTY, ClassId(2), one));
        let drained = tally.drain();
        assert_eq!(drained[0], (StackId::EMPTY, ClassId(1), Allocated { objects: 2.0, bytes: 80.0 }));
        assert!(tally.is_empty());
    }
}
