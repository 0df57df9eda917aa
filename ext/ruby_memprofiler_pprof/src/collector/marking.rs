//! The collector's callbacks for the garbage collector.

use super::sites::{Sites, marking};
use super::state::State;
use super::{Collector, Phase};
use crate::vm::{gc, keeper};
use magnus::Error;
use rb_sys::VALUE;
use std::ffi::c_void;
use std::time::{Duration, Instant};

impl Collector {
    /// Marks what the state refers to, except what its keepers mark.
    ///
    /// # Safety
    /// Must only be called as the mark function of the Ruby object.
    pub unsafe fn mark(&self) {
        if self.failure().is_some() {
            return;
        }
        self.ask_to_resume();
        let start = Instant::now();
        let [functions, keepers, classes] = self.state.with(|state| {
            let Sites { stacks, classes, .. } = &state.sites;
            [stacks.unkept_functions(), 0..stacks.keeper_count(), 0..classes.id_bound()]
        });
        if let Some(object) = self.only().object().filter(|_| self.phase() == Phase::Running) {
            // SAFETY: in a mark function. This has kept the object alive since it called `start`.
            unsafe { gc::mark(object) };
        }
        // SAFETY: in the mark function of the Ruby object, which keeps all of these alive.
        unsafe {
            marking::mark(self, functions, |sites, ids, batch| batch.fill(sites.stacks.references_of(ids)));
            marking::mark(self, keepers, |sites, ids, batch| batch.fill(sites.stacks.keepers(ids)));
            marking::mark(self, classes, |sites, ids, batch| batch.fill(sites.classes.references_of(ids)));
        }
        self.state.with(|state| state.spent_marking(start.elapsed()));
    }

    /// Creates more keepers, ahead of the functions that hooks will store: a hook cannot create any. `holder` is the
    /// Ruby object that owns this collector.
    ///
    /// # Safety
    /// The GVL must be held.
    pub(super) unsafe fn make_keepers(&self, holder: VALUE) -> Result<(), Error> {
        while let Some(number) = self.state.with(|state| state.sites.stacks.next_keeper()) {
            // SAFETY: the collector is in a box of its own that is freed with the holder.
            let keeper = unsafe { keeper::new(std::ptr::from_ref(self).cast(), holder, number, Self::mark_part) }?;
            self.state.with(|state| state.sites.stacks.add_keeper(keeper));
            // The collector marked these itself until now. The keeper must announce them to the GC as its own.
            self.state.with(|state| {
                // SAFETY: the GVL is held; the holder is in use, and the keeper, just made, is on this stack.
                unsafe { gc::write_barrier(holder, keeper) };
                let stacks = &state.sites.stacks;
                for value in stacks.references_of(stacks.kept_functions(number)) {
                    // SAFETY: the GVL is held. The keeper is alive, and so are the functions' references: until now the
                    // collector has marked them itself.
                    unsafe { gc::write_barrier(keeper, value) };
                }
            });
        }
        Ok(())
    }

    /// Marks what keeper number `number` keeps alive.
    ///
    /// # Safety
    /// Must only be called as the mark function of a keeper of the collector `owner`.
    unsafe fn mark_part(owner: *const c_void, number: usize) {
        // SAFETY: a keeper keeps its collector alive.
        let collector = unsafe { &*owner.cast::<Self>() };
        if collector.failure().is_some() {
            return;
        }
        let start = Instant::now();
        let functions = collector.state.with(|state| state.sites.stacks.kept_functions(number));
        // SAFETY: in the mark function of the keeper that keeps these alive.
        unsafe {
            marking::mark(collector, functions, |sites, ids, batch| batch.fill(sites.stacks.references_of(ids)));
        }
        collector.state.with(|state| state.spent_marking(start.elapsed()));
    }

    /// Updates references to objects that compaction has moved.
    ///
    /// # Safety
    /// Must only be called as the compact function of the Ruby object.
    pub unsafe fn compact(&self) {
        if self.failure().is_some() {
            return;
        }
        self.state.with(|state| {
            state.distrust_after(self.missed_collections.take_while_sweeping());
            // SAFETY: in a compact function. What is in the live set was alive when compaction began: a missed mark
            // phase would just have emptied it.
            state.reservoir.relocate(|address| unsafe { gc::location(address as VALUE) } as u64);
            // SAFETY: in a compact function.
            unsafe { state.sites.relocate() };
        });
    }
}

impl State {
    /// Adds to the time spent marking in the current garbage collection.
    pub fn spent_marking(&mut self, time: Duration) {
        let (spent, collection) = self.last_mark;
        let before = if collection == gc::count() { spent } else { 0 };
        self.last_mark = (before + time.as_nanos() as u64, gc::count());
    }
}
