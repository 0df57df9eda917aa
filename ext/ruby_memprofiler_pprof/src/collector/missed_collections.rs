//! Whether the hooks saw every garbage collection. Up to Ruby 3.4 they do not see those in other Ractors, up to 3.3
//! those that begin inside any hook, and Bug #19112 disables all hooks in the middle of a sweep: deaths would go
//! unnoticed.

use crate::vm::gc::{self, Info};
use magnus::{Error, Ruby};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// Compares the mark phases and sweeps that a collector saw with the VM's own count.
#[derive(Debug, Default)]
pub struct MissedCollections {
    seen: AtomicU32,
    /// The VM's count when counting began, without a collection whose mark phase had not ended.
    base: AtomicU32,
    swept: AtomicU32,
    /// Like `base`, without a collection whose sweep had not ended.
    swept_base: AtomicU32,
    /// The VM's counts at the mark phase and the sweep that were seen last. While one hook replaces another, both may
    /// see one, of a collection that another Ractor starts.
    last_seen: AtomicU32,
    last_swept: AtomicU32,
    /// Whether counting has begun.
    counting: Cell<bool>,
}

impl MissedCollections {
    /// Starts counting. The hooks must be on: adding one allocates memory, which may start a collection.
    pub fn begin(&self, ruby: &Ruby) -> Result<(), Error> {
        let info = Info::get(ruby)?;
        self.restart(Self::ended(info), Self::sweeps_ended(info));
        self.counting.set(true);
        Ok(())
    }

    /// Whether a collection is at work after its mark phase, and so may be moving objects and freeing pages. Safe on
    /// any thread, once counting has begun.
    pub fn may_move(&self) -> bool {
        // Until all hooks have returned from the end of the mark phase, the VM says that it marks.
        let has_marked = || self.last_seen.load(Ordering::Relaxed) == gc::count();
        let is_over = |info: &Info| info.is_sweeping() || (info.is_marking() && has_marked());
        gc::is_running() && Info::known().is_some_and(is_over)
    }

    /// Stops counting until it is started again.
    pub fn pause(&self) {
        self.counting.set(false);
    }

    fn restart(&self, ended: u32, sweeps_ended: u32) {
        self.seen.store(0, Ordering::Relaxed);
        self.base.store(ended, Ordering::Relaxed);
        self.swept.store(0, Ordering::Relaxed);
        self.swept_base.store(sweeps_ended, Ordering::Relaxed);
        self.last_seen.store(ended, Ordering::Relaxed);
        self.last_swept.store(sweeps_ended, Ordering::Relaxed);
    }

    /// For the hook at the end of a mark phase: how many collections were missed before. Those are forgotten.
    pub fn saw_mark_phase(&self) -> u32 {
        Self::count_once(&self.seen, &self.last_seen);
        self.take_while_sweeping()
    }

    /// After a mark phase and before the end of its sweep: how many collections were missed. Those are forgotten. Safe
    /// in hooks.
    pub fn take_while_sweeping(&self) -> u32 {
        if !self.counting.get() {
            return 0;
        }
        let count = gc::count();
        // All sweeps except the one to come.
        let missed = self.difference(count, count.wrapping_sub(1));
        if missed > 0 {
            self.restart(count, count.wrapping_sub(1));
        }
        missed
    }

    /// For the hook at the end of a sweep.
    pub fn saw_sweep(&self) {
        Self::count_once(&self.swept, &self.last_swept);
    }

    fn count_once(counter: &AtomicU32, last: &AtomicU32) {
        let count = gc::count();
        if last.swap(count, Ordering::Relaxed) != count {
            counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// For when the hooks are removed for a moment: counts a running sweep as missed, since FREEOBJ will not report all
    /// of it even though the end of the sweep is seen. Safe in hooks.
    pub fn miss_sweep(&self) {
        if Info::known().is_some_and(Info::is_sweeping) {
            self.swept.store(self.swept.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Relaxed);
        }
    }

    /// Whether collections went unnoticed. Safe on any thread, once counting has begun; without the GVL also true in the
    /// moment in which one is noticed.
    pub fn are_any(&self) -> bool {
        Info::known().is_none_or(|info| self.difference(Self::ended(info), Self::sweeps_ended(info)) > 0)
    }

    /// How many collections went unnoticed, or were not followed to their end, since [`begin`](Self::begin).
    pub fn count(&self, ruby: &Ruby) -> Result<u32, Error> {
        let info = Info::get(ruby)?;
        Ok(self.difference(Self::ended(info), Self::sweeps_ended(info)))
    }

    fn difference(&self, ended: u32, sweeps_ended: u32) -> u32 {
        let marks =
            ended.wrapping_sub(self.base.load(Ordering::Relaxed)).wrapping_sub(self.seen.load(Ordering::Relaxed));
        // Can be negative: the sweep of a collection may be seen whose mark phase was not.
        let sweeps = sweeps_ended
            .wrapping_sub(self.swept_base.load(Ordering::Relaxed))
            .wrapping_sub(self.swept.load(Ordering::Relaxed)) as i32;
        if marks == 0 { sweeps.max(0) as u32 } else { marks }
    }

    /// Whether the latest collection was a major one. Safe in hooks.
    pub fn is_major(&self) -> bool {
        Info::known().is_none_or(Info::is_major)
    }

    fn ended(info: &Info) -> u32 {
        gc::count().wrapping_sub(u32::from(info.is_marking()))
    }

    fn sweeps_ended(info: &Info) -> u32 {
        gc::count().wrapping_sub(u32::from(info.is_marking() || info.is_sweeping()))
    }
}
