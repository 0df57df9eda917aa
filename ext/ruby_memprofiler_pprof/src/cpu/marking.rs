//! The sampler's callbacks for the garbage collector.

use super::Sampler;
use crate::vm::gc;
use rb_sys::VALUE;

/// How many functions are processed at a time; each has two references.
const STRIDE: usize = 32;

impl Sampler {
    /// Marks what the state refers to. Does not hold the state meanwhile, as the collector's.
    ///
    /// # Safety
    /// Must only be called as the mark function of the Ruby object.
    pub unsafe fn mark(&self) {
        if self.failure().is_some() {
            return;
        }
        let (bound, threads) = self.state.with(|state| {
            let threads: Vec<VALUE> = state.threads().collect();
            (state.sites.stacks.unkept_functions().end, threads)
        });
        for thread in threads {
            // SAFETY: in a mark function; a record's Thread was marked since it was running.
            unsafe { gc::mark(thread) };
        }
        let mut batch = [0 as VALUE; 2 * STRIDE];
        for first in (0..bound).step_by(STRIDE) {
            let count = self.state.with(|state| {
                let references = state.sites.stacks.references_of(first..bound.min(first + STRIDE));
                batch.iter_mut().zip(references).map(|(slot, value)| *slot = value).count()
            });
            for &value in &batch[..count] {
                // SAFETY: in a mark function. The value was a valid reference when it was copied to the batch, which is
                // on the machine stack, so a collection in between keeps the object alive and in place.
                unsafe { gc::mark(value) };
            }
        }
    }

    /// Updates references to objects that compaction has moved.
    ///
    /// # Safety
    /// Must only be called as the compact function of the Ruby object.
    pub unsafe fn compact(&self) {
        if self.failure().is_none() {
            // SAFETY: in a compact function.
            self.state.with(|state| unsafe { state.sites.relocate() });
        }
    }
}
