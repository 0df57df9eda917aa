//! What was allocated and has died again before a flush could see it.

use crate::hash::{Map, map_bytes};
use crate::live_set::ClassId;
use crate::stack_tree::StackId;
use std::collections::hash_map::Entry;
use std::ops::AddAssign;

/// Objects of one stack and class, as estimates for the whole program.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Allocated {
    /// How many.
    pub objects: f64,
    /// Their bytes.
    pub bytes: f64,
}

impl AddAssign for Allocated {
    fn add_assign(&mut self, other: Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
    }
}

/// Sums per stack and class, so that its size depends on the number of places that allocate, not of objects. Each
/// entry holds a reference to its stack and class.
#[derive(Debug, Default)]
pub struct Tally {
    sums: Map<(StackId, ClassId), Allocated>,
    /// An entry of `sums`, and what is still to be added to it: the dead come in runs of one kind.
    latest: Option<((StackId, ClassId), Allocated)>,
}

impl Tally {
    /// An empty tally.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds objects. Returns whether the entry is new, and so has taken over the caller's references to stack and class.
    #[inline]
    pub fn add(&mut self, stack: StackId, class: ClassId, allocated: Allocated) -> bool {
        let key = (stack, class);
        if let Some((latest, sum)) = &mut self.latest
            && *latest == key
        {
            *sum += allocated;
            return false;
        }
        self.settle();
        self.latest = Some((key, allocated));
        match self.sums.entry(key) {
            Entry::Occupied(_) => false,
            Entry::Vacant(vacant) => {
                vacant.insert(Allocated::default());
                true
            }
        }
    }

    /// Adds what `latest` still holds.
    fn settle(&mut self) {
        if let Some((key, allocated)) = self.latest.take()
            && let Some(sum) = self.sums.get_mut(&key)
        {
            *sum += allocated;
        }
    }

    /// Empties the tally; the caller takes over the references. The order depends on the keys only.
    pub fn drain(&mut self) -> Vec<(StackId, ClassId, Allocated)> {
        self.settle();
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
