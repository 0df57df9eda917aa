//! How a collector starts, stops, and ends when something went wrong.

use super::options::Liveness;
use super::{Collector, Only, Phase, State, random_seed, state, totals};
use crate::faults;
use crate::vm::mark_bits::MarkBits;
use crate::vm::threads;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, Ruby, Value};
use std::sync::atomic::Ordering;

impl Collector {
    /// Begins to sample the allocations of `only` and follow deaths. `holder` is the Ruby object that owns this
    /// collector.
    ///
    /// # Safety
    /// On the main Ractor, which is known, with others watched.
    pub unsafe fn start(&self, ruby: &Ruby, holder: Value, only: Only) -> Result<(), Error> {
        if self.phase.get() == Phase::Running {
            return Ok(());
        }
        self.state.with(|state| state.only = only);
        if self.phase.get() == Phase::Idle {
            let asked = self.options().liveness;
            let marks = if asked == Liveness::FreeObject { None } else { MarkBits::find(ruby) };
            self.state.with(|state| {
                // The self-test has run by now.
                state.configure(state.options.clone());
                state.mark_bits = marks;
                state.reservoir.clear(marks.is_none());
            });
            // SAFETY: the GVL is held, as `ruby` shows.
            unsafe { self.make_keepers(holder.as_raw()) }?;
            // Allocates, which is not to be sampled.
            self.missed_collections.info(ruby)?;
            self.baseline.set(Some(totals::Baseline::take(ruby)));
            self.anchor(holder.as_raw())?;
            self.begin_intervals();
        } else {
            self.check_collections(ruby)?;
        }
        // A hook takes memory, for which the GC may run first: it must not find the one before gone.
        // SAFETY: on the main Ractor, as asked for above, and not in a hook; `anchor` was called, here or at an earlier
        // start.
        if let Err(error) = unsafe { self.hook(Phase::Running) } {
            if self.phase.get() == Phase::Idle {
                self.release_anchor();
            }
            return Err(error);
        }
        match self.phase.replace(Phase::Running) {
            Phase::Idle => self.missed_collections.begin(ruby)?,
            // SAFETY: on the main Ractor, as asked for above, and not in a hook.
            phase => unsafe { self.unhook(phase) },
        }
        self.disarmed.set(None);
        self.started.set(true);
        Ok(())
    }

    /// If deaths may have gone unnoticed, forgets which objects are alive, and sees to it that the hooks are on again.
    pub(super) fn check_collections(&self, ruby: &Ruby) -> Result<(), Error> {
        let missed = self.missed_collections.count(ruby)?;
        if missed == 0 || self.phase.get() == Phase::Idle {
            // SAFETY: in a method of the collector, where the VM may run Ruby code: a safe point. That is on the main
            // Ractor, where this collector was started: others cannot get hold of it.
            return unsafe { self.come_back() };
        }
        self.state.with(|state| state.distrust_after(missed));
        // Adding a hook makes the VM look at which events are wanted, which undoes Bug #19112.
        let phase = self.phase.get();
        self.missed_collections.pause();
        // SAFETY: on the main Ractor, where this collector was started: others cannot get hold of it. Not in a hook. A
        // collector that is not idle is anchored.
        unsafe {
            self.unhook(phase);
            self.hook(phase)?;
        }
        self.missed_collections.begin(ruby)
    }

    /// Ends sampling. Deaths are followed on, so that the next flush tells the truth.
    pub fn stop(&self) -> Result<(), Error> {
        if self.phase.get() == Phase::Running { self.end_in(Phase::Stopped) } else { Ok(()) }
    }

    fn end_in(&self, end: Phase) -> Result<(), Error> {
        // In this order as in `start`.
        // SAFETY: on the main Ractor, where this collector was started: others cannot get hold of it. Not in a hook. A
        // collector that is not idle is anchored.
        unsafe {
            self.hook(end)?;
            self.unhook(self.phase.replace(end));
        }
        self.state.with(|state| state.sites.stacks.forget_contexts());
        Ok(())
    }

    /// Stops by the profiler's own decision.
    pub fn disarm(&self, reason: &'static str) -> Result<(), Error> {
        if self.phase.get() == Phase::Running {
            self.stop()?;
            self.disarmed.set(Some(reason));
        }
        Ok(())
    }

    /// Takes all hooks off, and keeps what is known. The first garbage collection from now on is missed.
    pub fn detach(&self) -> Result<(), Error> {
        if matches!(self.phase.get(), Phase::Running | Phase::Stopped) { self.end_in(Phase::Detached) } else { Ok(()) }
    }

    /// Whether it has stopped, and the next flush is to be its last.
    pub(super) fn is_ending(&self) -> bool {
        matches!(self.phase.get(), Phase::Stopped | Phase::Detached)
    }

    /// Takes the last hook off and forgets all samples.
    pub(super) fn disconnect(&self) {
        self.missed_collections.pause();
        // SAFETY: at the end of a flush, so not in a hook, and on the main Ractor, where this collector was started:
        // others cannot get hold of it.
        unsafe { self.unhook(self.phase.replace(Phase::Idle)) };
        self.state.with(State::clear);
        self.release_anchor();
    }

    /// In a forked child: the live set stays, and the number of stack ends, since it may turn out here that a collection
    /// was missed at one. Other counters, the interval and random numbers begin anew.
    pub fn after_fork(&self) {
        self.begin_intervals();
        self.contended.store(0, Ordering::Relaxed);
        self.state.with(|state| {
            let seed = state.options.seed.map_or_else(random_seed, |seed| seed ^ u64::from(std::process::id()));
            state.reservoir.reseed(seed);
            state.reservoir.reset_counts();
            state.counters = state::Counters::default();
            state.forget_allocations();
            state.forget_flush_of_others(threads::current());
        });
    }

    /// Where the collector panicked, if it did. What is stored may make no sense then, and nothing of it is used.
    pub fn failure(&self) -> Option<&'static str> {
        self.panicked.get().copied()
    }

    /// After a panic, which may be in a hook: makes sure that nothing is sampled from now on.
    pub fn panicked(&self, place: &'static str) {
        faults::panicked(place);
        self.countdown.stop();
        // The first place is what counts.
        let _ = self.panicked.set(place);
    }

    /// After a panic, not in a hook: takes the hooks off, and relies on nothing that is stored.
    pub fn abandon(&self) {
        if self.phase.get() != Phase::Idle {
            self.missed_collections.pause();
            // SAFETY: not in a hook, and on the main Ractor, where this collector was started: others cannot get hold
            // of it.
            unsafe { self.unhook(self.phase.replace(Phase::Idle)) };
            self.release_anchor();
        }
    }
}
