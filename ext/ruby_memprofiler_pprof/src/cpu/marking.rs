//! The sampler's callbacks for the garbage collector.

use super::Sampler;
use crate::collector::sites::marking;
use crate::vm::gc;
use rb_sys::VALUE;

impl Sampler {
    /// Marks what the state refers to.
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
        // SAFETY: in the mark function of the Ruby object, which keeps these alive.
        unsafe { marking::mark(self, 0..bound, |sites, ids, batch| batch.fill(sites.stacks.references_of(ids))) };
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
