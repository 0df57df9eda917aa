//! Whether every garbage collection was told of. Up to Ruby 3.4 those in other Ractors are not, up to 3.3 neither are
//! those that begin inside anybody's hook, and Bug #19112 switches all hooks off in the middle of a sweep: deaths would go
//! unnoticed.

use crate::vm::gc::{self, Info};
use crate::vm::protect;
use magnus::{Error, Ruby};
use std::cell::{Cell, OnceCell};

/// Counts the mark phases and the sweeps that a collector was told of, against those that the VM counts.
#[derive(Debug, Default)]
pub struct MissedCollections {
    info: OnceCell<Info>,
    seen: Cell<u32>,
    /// The VM's count when counting began, without a collection whose mark phase was still to end.
    base: Cell<u32>,
    swept: Cell<u32>,
    /// As `base`, without a collection whose sweep was still to end.
    swept_base: Cell<u32>,
    /// Whether counting has begun.
    counting: Cell<bool>,
}

impl MissedCollections {
    /// Begins to count. The hooks must be on: to add one takes memory, for which a collection may begin.
    pub fn begin(&self, ruby: &Ruby) -> Result<(), Error> {
        // Made at first use, which allocates: also then a collection may begin.
        let info = self.info(ruby)?;
        self.restart(Self::ended(info), Self::sweeps_ended(info));
        self.counting.set(true);
        Ok(())
    }

    /// Counts nothing until counting begins anew.
    pub fn pause(&self) {
        self.counting.set(false);
    }

    fn restart(&self, ended: u32, sweeps_ended: u32) {
        self.seen.set(0);
        self.base.set(ended);
        self.swept.set(0);
        self.swept_base.set(sweeps_ended);
    }

    /// In the hook at the end of a mark phase. How many collections were missed before; those are forgotten.
    pub fn saw_mark_phase(&self) -> u32 {
        self.seen.set(self.seen.get().wrapping_add(1));
        self.take_while_sweeping()
    }

    /// When a mark phase has ended and its sweep has not: how many collections were missed. Those are forgotten. Safe
    /// in hooks.
    pub fn take_while_sweeping(&self) -> u32 {
        if !self.counting.get() {
            return 0;
        }
        let count = gc::count();
        // All sweeps but the one to come.
        let missed = self.difference(count, count.wrapping_sub(1));
        if missed > 0 {
            self.restart(count, count.wrapping_sub(1));
        }
        missed
    }

    /// In the hook at the end of a sweep.
    pub fn saw_sweep(&self) {
        self.swept.set(self.swept.get().wrapping_add(1));
    }

    /// When the hooks go off for a moment: counts a sweep under way as missed, since FREEOBJ will not have told of all of it
    /// when its end is told of. Safe in hooks.
    pub fn miss_sweep(&self) {
        if self.info.get().is_some_and(Info::is_sweeping) {
            self.swept.set(self.swept.get().wrapping_sub(1));
        }
    }

    /// How many collections were not, or not to their end, told of since [`begin`](Self::begin).
    pub fn count(&self, ruby: &Ruby) -> Result<u32, Error> {
        let info = self.info(ruby)?;
        Ok(self.difference(Self::ended(info), Self::sweeps_ended(info)))
    }

    fn difference(&self, ended: u32, sweeps_ended: u32) -> u32 {
        let marks = ended.wrapping_sub(self.base.get()).wrapping_sub(self.seen.get());
        // Less than none: of a collection that was marked unnoticed the sweep may be told of.
        let sweeps = sweeps_ended.wrapping_sub(self.swept_base.get()).wrapping_sub(self.swept.get()) as i32;
        if marks == 0 { sweeps.max(0) as u32 } else { marks }
    }

    /// Whether the latest collection was a major one. Safe in hooks.
    pub fn is_major(&self) -> bool {
        self.info.get().is_none_or(Info::is_major)
    }

    /// The state of the garbage collector.
    pub fn info(&self, ruby: &Ruby) -> Result<&Info, Error> {
        if let Some(info) = self.info.get() {
            return Ok(info);
        }
        let info = protect(|| Info::new(ruby))?;
        Ok(self.info.get_or_init(|| info))
    }

    fn ended(info: &Info) -> u32 {
        gc::count().wrapping_sub(u32::from(info.is_marking()))
    }

    fn sweeps_ended(info: &Info) -> u32 {
        gc::count().wrapping_sub(u32::from(info.is_marking() || info.is_sweeping()))
    }
}
