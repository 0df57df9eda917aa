//! What the garbage collector asks of a collector.

use super::Collector;
use super::state::State;
use crate::vm::{gc, keeper};
use magnus::Error;
use rb_sys::VALUE;
use std::ffi::c_void;
use std::time::{Duration, Instant};

impl Collector {
    /// Marks what the state refers to, apart from what its keepers mark.
    ///
    /// # Safety
    /// Only as the mark function of the Ruby object.
    pub unsafe fn mark(&self) {
        if self.failure().is_some() {
            return;
        }
        let start = Instant::now();
        self.state.with(|state| {
            for value in state.sites.unkept_references() {
                // SAFETY: in a mark function; the state keeps what it refers to alive through it.
                unsafe { gc::mark(value) };
            }
            state.spent_marking(start.elapsed());
        });
    }

    /// Makes more keepers, ahead of the functions that hooks will store: a hook cannot make any. `holder` is the Ruby
    /// object that owns this collector.
    ///
    /// # Safety
    /// GVL held.
    pub(super) unsafe fn make_keepers(&self, holder: VALUE) -> Result<(), Error> {
        while let Some(number) = self.state.with(|state| state.sites.stacks.next_keeper()) {
            // SAFETY: the collector is in a box of its own that is freed with the holder.
            let keeper = unsafe { keeper::new(std::ptr::from_ref(self).cast(), holder, number, Self::mark_part) }?;
            self.state.with(|state| state.sites.stacks.add_keeper(keeper));
            // What the collector marked itself until now, the keeper has to tell the GC of as its own.
            self.state.with(|state| {
                // SAFETY: the GVL is held; the holder is in use, and the keeper, just made, is on this stack.
                unsafe { gc::write_barrier(holder, keeper) };
                for value in state.sites.stacks.kept_references(number) {
                    // SAFETY: the GVL is held. The keeper is alive, and so is what functions refer to: until now the
                    // collector has marked it itself.
                    unsafe { gc::write_barrier(keeper, value) };
                }
            });
        }
        Ok(())
    }

    /// Marks what keeper number `number` keeps alive.
    ///
    /// # Safety
    /// Only as the mark function of a keeper of the collector `owner`.
    unsafe fn mark_part(owner: *const c_void, number: usize) {
        // SAFETY: a keeper keeps its collector alive.
        let collector = unsafe { &*owner.cast::<Self>() };
        if collector.failure().is_some() {
            return;
        }
        let start = Instant::now();
        collector.state.with(|state| {
            for value in state.sites.stacks.kept_references(number) {
                // SAFETY: in a keeper's mark function; what functions refer to is kept alive by being marked here.
                unsafe { gc::mark(value) };
            }
            state.spent_marking(start.elapsed());
        });
    }

    /// Follows objects to where compaction has moved them.
    ///
    /// # Safety
    /// Only as the compact function of the Ruby object.
    pub unsafe fn compact(&self) {
        if self.failure().is_some() {
            return;
        }
        self.state.with(|state| {
            state.distrust_after(self.missed_collections.take_while_sweeping());
            // SAFETY: in a compact function. What is in the live set was alive when compaction began: a mark phase that
            // was missed would just have emptied it.
            state.reservoir.relocate(|address| unsafe { gc::location(address as VALUE) } as u64);
            // SAFETY: in a compact function.
            unsafe { state.sites.relocate() };
        });
    }
}

impl State {
    /// Adds to the time that marking took in the garbage collection under way.
    pub fn spent_marking(&mut self, time: Duration) {
        let (spent, collection) = self.last_mark;
        let before = if collection == gc::count() { spent } else { 0 };
        self.last_mark = (before + time.as_nanos() as u64, gc::count());
    }
}
