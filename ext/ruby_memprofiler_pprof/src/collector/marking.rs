//! What the garbage collector asks of a collector.

use super::state::State;
use super::{Collector, capture};
use crate::vm::{gc, keeper};
use magnus::Error;
use rb_sys::VALUE;
use std::ffi::c_void;
use std::ops::Range;
use std::time::{Duration, Instant};

impl Collector {
    /// MarkBits what the state refers to, apart from what its keepers mark.
    ///
    /// # Safety
    /// Only as the mark function of the Ruby object.
    pub unsafe fn mark(&self) {
        if self.failure().is_some() {
            return;
        }
        let start = Instant::now();
        self.state.with(|state| {
            let functions = state.function_references(state.capture.unkept_functions());
            for value in functions.chain(state.class_references()).chain(state.capture.keepers.iter().copied()) {
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
        /// How many to have in reserve.
        const SPARE: usize = 4;
        let wanted = |state: &mut State| {
            let numbers = state.capture.stacks.function_bound() / capture::KEPT_FUNCTIONS + SPARE;
            (state.capture.keepers.len() < numbers).then_some(state.capture.keepers.len())
        };
        while let Some(number) = self.state.with(wanted) {
            // SAFETY: the collector is in a box of its own that is freed with the holder.
            let keeper = unsafe { keeper::new(std::ptr::from_ref(self).cast(), holder, number, Self::mark_part) }?;
            self.state.with(|state| state.capture.keepers.push(keeper));
            // What the collector marked itself until now, the keeper has to tell the GC of as its own.
            self.state.with(|state| {
                // SAFETY: the GVL is held; the holder is in use, and the keeper, just made, is on this stack.
                unsafe { gc::write_barrier(holder, keeper) };
                for value in state.function_references(Self::part(number)) {
                    // SAFETY: the GVL is held. The keeper is alive, and so is what functions refer to: until now the
                    // collector has marked it itself.
                    unsafe { gc::write_barrier(keeper, value) };
                }
            });
        }
        Ok(())
    }

    /// The ids of the functions that keeper number `number` keeps alive.
    fn part(number: usize) -> Range<usize> {
        number * capture::KEPT_FUNCTIONS..(number + 1) * capture::KEPT_FUNCTIONS
    }

    /// MarkBits what keeper number `number` keeps alive.
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
            for value in state.function_references(Self::part(number)) {
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
            unsafe { state.relocate_references() };
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
