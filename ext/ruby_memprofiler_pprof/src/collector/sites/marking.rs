//! Marks what sites refer to.

use super::Sites;
use crate::collector::resolve::Owner;
use crate::vm::gc;
use rb_sys::VALUE;
use std::ops::Range;

/// How many ids are processed at a time.
const STRIDE: usize = 32;

/// The references of the functions or classes with some ids, on the machine stack.
pub struct Batch {
    /// A function has two references.
    values: [VALUE; 2 * STRIDE],
    count: usize,
}

impl Batch {
    /// Replaces what is in it.
    pub fn fill(&mut self, references: impl Iterator<Item = VALUE>) {
        self.count = 0;
        for (slot, value) in self.values.iter_mut().zip(references) {
            *slot = value;
            self.count += 1;
        }
    }
}

/// Marks what `references` finds for some ids. Does not hold the sites meanwhile: those who ask outside a garbage
/// collection what an object refers to, as `ObjectSpace.reachable_objects_from` does, may allocate in [`gc::mark`], so
/// that objects die and hooks run.
///
/// # Safety
/// Must only be called in the mark function of what keeps these references alive.
pub unsafe fn mark(owner: &impl Owner, ids: Range<usize>, references: impl Fn(&Sites, Range<usize>, &mut Batch)) {
    let mut batch = Batch { values: [0; 2 * STRIDE], count: 0 };
    for first in ids.clone().step_by(STRIDE) {
        let some = first..ids.end.min(first + STRIDE);
        owner.with_sites(|sites| references(sites, some, &mut batch));
        for &value in &batch.values[..batch.count] {
            // SAFETY: in a mark function. The value was a valid reference when it was copied to the batch. The batch is
            // on the machine stack, which the GC scans conservatively, so a collection in between keeps the object
            // alive and in place.
            unsafe { gc::mark(value) };
        }
    }
}
