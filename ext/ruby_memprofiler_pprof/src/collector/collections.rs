//! Whether every garbage collection was told of. Up to Ruby 3.4 those in other Ractors are not, up to 3.3 neither are
//! those that begin inside anybody's hook, and Bug #19112 switches all hooks off in the middle of a sweep: deaths would go
//! unnoticed.

use crate::vm::gc::{self, Info};
use magnus::Ruby;
use std::cell::{Cell, OnceCell};

/// Counts the mark phases and the sweeps that a collector was told of, against those that the VM counts.
#[derive(Debug, Default)]
pub struct Collections {
    info: OnceCell<Info>,
    seen: Cell<u32>,
    /// The VM's count when counting began, without a collection whose mark phase was still to end.
    base: Cell<u32>,
    swept: Cell<u32>,
    /// As `base`, without a collection whose sweep was still to end.
    swept_base: Cell<u32>,
}

impl Collections {
    /// Begins to count.
    pub fn begin(&self, ruby: &Ruby) {
        self.seen.set(0);
        self.base.set(self.ended(ruby));
        self.swept.set(0);
        self.swept_base.set(self.sweeps_ended(ruby));
    }

    /// In the hook at the end of a mark phase.
    pub fn saw_one(&self) {
        self.seen.set(self.seen.get().wrapping_add(1));
    }

    /// In the hook at the end of a sweep.
    pub fn saw_sweep(&self) {
        self.swept.set(self.swept.get().wrapping_add(1));
    }

    /// How many collections were not, or not to their end, told of since [`begin`](Self::begin).
    pub fn missed(&self, ruby: &Ruby) -> u32 {
        let marks = self.ended(ruby).wrapping_sub(self.base.get()).wrapping_sub(self.seen.get());
        let sweeps = self.sweeps_ended(ruby).wrapping_sub(self.swept_base.get()).wrapping_sub(self.swept.get());
        if marks == 0 { sweeps } else { marks }
    }

    /// Whether the latest collection was a major one. Safe in hooks.
    pub fn is_major(&self) -> bool {
        self.info.get().is_none_or(Info::is_major)
    }

    /// The state of the garbage collector.
    pub fn info(&self, ruby: &Ruby) -> &Info {
        self.info.get_or_init(|| Info::new(ruby))
    }

    fn ended(&self, ruby: &Ruby) -> u32 {
        gc::count().wrapping_sub(u32::from(self.info(ruby).is_marking()))
    }

    fn sweeps_ended(&self, ruby: &Ruby) -> u32 {
        let info = self.info(ruby);
        gc::count().wrapping_sub(u32::from(info.is_marking() || info.is_sweeping()))
    }
}
