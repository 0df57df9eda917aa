//! How a collector starts, stops, and ends when something went wrong.

use super::options::Liveness;
use super::{Collector, Only, Phase, State, random_seed, state, totals};
use crate::faults;
use crate::vm::marks::Marks;
use magnus::rb_sys::AsRawValue;
use magnus::{Ruby, Value};
use memprofiler_core::live_set::LiveSet;
use std::sync::atomic::Ordering;

impl Collector {
    /// Begins to sample the allocations of `only` and follow deaths. `holder` is the Ruby object that owns this
    /// collector.
    ///
    /// # Safety
    /// On the main Ractor, which is known, with others watched.
    pub unsafe fn start(&self, ruby: &Ruby, holder: Value, only: Only) {
        if self.phase.get() == Phase::Running {
            return;
        }
        self.state.with(|state| state.only = only);
        self.disarmed.set(None);
        self.started.set(true);
        if self.phase.get() == Phase::Idle {
            let asked = self.options().liveness;
            let marks = if asked == Liveness::FreeObject { None } else { Marks::find(ruby) };
            self.state.with(|state| {
                // The self-test has run by now.
                state.configure(state.options.clone());
                state.marks = marks;
                state.live = if marks.is_some() { LiveSet::by_position() } else { LiveSet::by_address() };
            });
            self.anchor(holder.as_raw());
            // SAFETY: the GVL is held, as `ruby` shows.
            unsafe { self.make_keepers(holder.as_raw()) };
            self.begin_intervals();
            // Allocates, which is not to be sampled.
            self.collections.info(ruby);
            self.baseline.set(Some(totals::Baseline::take(ruby)));
        } else {
            self.check_collections(ruby);
        }
        self.countdown.store(self.state.with(|state| state.sampler.next_gap()), Ordering::Relaxed);
        // A hook takes memory, for which the GC may run first: it must not find the one before gone.
        // SAFETY: the caller's promise; `anchor` keeps the collector alive and in place.
        unsafe { self.hook(Phase::Running) };
        match self.phase.replace(Phase::Running) {
            Phase::Idle => self.collections.begin(ruby),
            // SAFETY: as above.
            phase => unsafe { self.unhook(phase) },
        }
    }

    /// If deaths may have gone unnoticed, forgets which objects are alive, and sees to it that the hooks are on again.
    pub(super) fn check_collections(&self, ruby: &Ruby) {
        let missed = self.collections.missed(ruby);
        if missed == 0 || self.phase.get() == Phase::Idle {
            // SAFETY: the VM may run Ruby code here, on the main Ractor as in `stop`.
            unsafe { self.come_back() };
            return;
        }
        self.state.with(|state| state.distrust_after(missed));
        // Adding a hook makes the VM look at which events are wanted, which undoes Bug #19112.
        let phase = self.phase.get();
        self.collections.pause();
        // SAFETY: as in `stop`; a collector that is not idle is anchored.
        unsafe {
            self.unhook(phase);
            self.hook(phase);
        }
        self.collections.begin(ruby);
    }

    /// Ends sampling. Deaths are followed on, so that the next flush tells the truth.
    pub fn stop(&self) {
        if self.phase.get() == Phase::Running {
            self.end_in(Phase::Stopped);
        }
    }

    fn end_in(&self, end: Phase) {
        // In this order as in `start`.
        // SAFETY: a collector that is not idle is anchored, was started on the main Ractor, and is not shareable with
        // others.
        unsafe {
            self.hook(end);
            self.unhook(self.phase.replace(end));
        }
        self.state.with(|state| state.capture.forget_contexts());
    }

    /// Stops by the profiler's own decision.
    pub fn disarm(&self, reason: &'static str) {
        if self.phase.get() == Phase::Running {
            self.stop();
            self.disarmed.set(Some(reason));
        }
    }

    /// Takes all hooks off, and keeps what is known. The first garbage collection from now on is missed.
    pub fn detach(&self) {
        if matches!(self.phase.get(), Phase::Running | Phase::Stopped) {
            self.end_in(Phase::Detached);
        }
    }

    /// Whether it has stopped, and the next flush is to be its last.
    pub(super) fn is_ending(&self) -> bool {
        matches!(self.phase.get(), Phase::Stopped | Phase::Detached)
    }

    /// Takes the last hook off and forgets all samples.
    pub(super) fn disconnect(&self) {
        self.collections.pause();
        // SAFETY: as in `stop`.
        unsafe { self.unhook(self.phase.replace(Phase::Idle)) };
        self.state.with(State::clear);
        self.release_anchor();
    }

    /// In a forked child: the live set stays, and the number of stack ends, since it may turn out here that a collection
    /// was missed at one. Other counters, the interval and random numbers begin anew.
    pub fn after_fork(&self) {
        self.begin_intervals();
        self.contended.store(0, Ordering::Relaxed);
        let gap = self.state.with(|state| {
            let seed = state.options.seed.map_or_else(random_seed, |seed| seed ^ u64::from(std::process::id()));
            state.sampler.reseed(seed);
            state.counters = state::Counters::default();
            state.forget_allocations();
            state.end_flush();
            state.sampler.next_gap()
        });
        self.countdown.store(gap, Ordering::Relaxed);
    }

    /// Where the collector panicked, if it did. What is stored may make no sense then, and nothing of it is used.
    pub fn failure(&self) -> Option<&'static str> {
        self.panicked.get().copied()
    }

    /// After a panic, which may be in a hook: makes sure that nothing is sampled from now on.
    pub fn panicked(&self, place: &'static str) {
        faults::panicked(place);
        self.countdown.store(u64::MAX, Ordering::Relaxed);
        // The first place is what counts.
        let _ = self.panicked.set(place);
    }

    /// After a panic, not in a hook: takes the hooks off, and relies on nothing that is stored.
    pub fn abandon(&self) {
        if self.phase.get() != Phase::Idle {
            self.collections.pause();
            // SAFETY: as in `stop`.
            unsafe { self.unhook(self.phase.replace(Phase::Idle)) };
            self.release_anchor();
        }
    }
}
