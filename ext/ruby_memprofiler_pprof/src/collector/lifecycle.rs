//! How a collector starts and stops, and how it ends when something went wrong.

use super::options::Liveness;
use super::{Collector, Only, Phase, State, random_seed, state, totals, watch};
use crate::allocator::reserve;
use crate::faults;
use crate::vm::mark_bits::MarkBits;
use crate::vm::ractor::MainRactor;
use crate::vm::{child, gc, memory, threads};
use magnus::rb_sys::AsRawValue;
use magnus::{Error, Ruby, Value};
use rb_sys::VALUE;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Collector {
    /// Starts sampling the allocations of `only` and tracking deaths. `holder` is the Ruby object that owns this
    /// collector. The main Ractor must be marked, and others watched.
    pub fn start(&self, ruby: &Ruby, main: MainRactor, holder: Value, only: Only) -> Result<(), Error> {
        if self.phase.get() == Phase::Running {
            return Ok(());
        }
        reserve::fill();
        self.state.with(|state| state.only = only);
        if self.phase.get() == Phase::Idle {
            self.prepare(ruby, holder.as_raw())?;
        } else {
            self.check_collections(ruby)?;
        }
        // Adding a hook allocates memory, for which the GC may run first: it must not find the previous hook gone.
        if let Err(error) = self.hook(main, Phase::Running) {
            if self.phase.get() == Phase::Idle {
                self.release_anchor();
            }
            return Err(error);
        }
        match self.phase.replace(Phase::Running) {
            Phase::Idle => self.missed_collections.begin(ruby)?,
            phase => self.unhook(main, phase),
        }
        if let Some(object) = only.object() {
            // SAFETY: the GVL is held; the holder is in use, and the Thread or Fiber runs.
            unsafe { gc::write_barrier(holder.as_raw(), object) };
        }
        memory::note_process();
        self.disarmed.set(None);
        self.started.set(Some(Instant::now()));
        // Without memory for another hook the next flush adds it.
        let _ = self.adopt_sampling(main);
        Ok(())
    }

    /// For a start at which nothing is known.
    fn prepare(&self, ruby: &Ruby, holder: VALUE) -> Result<(), Error> {
        let asked = self.options().liveness;
        let marks = if asked == Liveness::FreeObject { None } else { MarkBits::find(ruby) };
        self.state.with(|state| {
            // The self-test has run by now.
            state.configure(state.options.clone());
            state.mark_bits = marks;
            state.reservoir.clear(marks.is_none());
            state.reservoir.use_windows(None);
        });
        // SAFETY: the GVL is held, as `ruby` shows.
        unsafe { self.make_keepers(holder) }?;
        // Allocates, which must not be sampled.
        gc::Info::get(ruby)?;
        let baseline = totals::Baseline::take(ruby);
        self.state.with(|state| state.baseline = Some(baseline));
        self.anchor(holder)?;
        self.begin_intervals();
        Ok(())
    }

    /// For the collector's methods. Others than the main Ractor, on which it was started, have no access to it.
    pub(super) fn main_ractor(&self) -> MainRactor {
        debug_assert_ne!(self.phase.get(), Phase::Idle);
        // SAFETY: on the main Ractor, as Ruby code has called a method of a collector with hooks, and not in a hook.
        unsafe { MainRactor::new() }
    }

    /// If deaths may have gone unnoticed, forgets which objects are alive, and makes sure that the hooks are on again.
    pub(super) fn check_collections(&self, ruby: &Ruby) -> Result<(), Error> {
        let phase = self.phase.get();
        if phase == Phase::Idle {
            return Ok(());
        }
        let main = self.main_ractor();
        // First, since adding a hook allocates memory, which may start a collection that no hook sees.
        let resumed = self.resume_hook(main);
        let missed = self.missed_collections.count(ruby)?;
        if missed == 0 {
            return resumed;
        }
        self.state.with(|state| state.distrust_after(missed));
        // Adding a hook makes the VM recompute which events are wanted, which undoes Bug #19112.
        self.missed_collections.pause();
        self.unhook(main, phase);
        let hooked = self.hook(main, phase);
        // Without a hook collections are missed, and noticed; then, or at the next safe point, it is added.
        self.suspended.store(hooked.is_err(), Ordering::Relaxed);
        self.missed_collections.begin(ruby)?;
        hooked
    }

    /// Ends sampling. Deaths are still tracked, so that the next flush is correct.
    pub fn stop(&self) -> Result<(), Error> {
        if self.phase.get() == Phase::Running { self.end_in(Phase::Stopped) } else { Ok(()) }
    }

    fn end_in(&self, end: Phase) -> Result<(), Error> {
        if self.failure().is_some() {
            self.abandon();
            return Ok(());
        }
        let main = self.main_ractor();
        // In this order for the same reason as in `start`.
        self.hook(main, end)?;
        self.close_window(main);
        self.unhook(main, self.phase.replace(end));
        self.end_windows(main);
        self.state.with(|state| state.sites.stacks.forget_contexts());
        Ok(())
    }

    /// Stops on the profiler's own decision.
    pub fn disarm(&self, reason: &'static str) -> Result<(), Error> {
        if self.phase.get() == Phase::Running {
            self.stop()?;
            self.disarmed.set(Some(reason));
        }
        Ok(())
    }

    /// Removes all hooks and keeps all data. The next garbage collection counts as missed.
    pub fn detach(&self) -> Result<(), Error> {
        if matches!(self.phase.get(), Phase::Running | Phase::Stopped) { self.end_in(Phase::Detached) } else { Ok(()) }
    }

    /// Whether it was stopped, so that the next flush is its last.
    pub(super) fn is_ending(&self) -> bool {
        matches!(self.phase.get(), Phase::Stopped | Phase::Detached)
    }

    /// Removes the last hook and forgets all samples.
    pub(super) fn disconnect(&self) {
        self.missed_collections.pause();
        self.unhook(self.main_ractor(), self.phase.replace(Phase::Idle));
        self.state.with(State::clear);
        self.release_anchor();
    }

    /// For a forked child. Keeps the live set, and the number of stack ends, since the child may notice that a
    /// collection was missed at one of them. Resets other counters, the interval and the random numbers.
    pub fn after_fork(&self) {
        memory::after_fork();
        child::after_fork();
        watch::after_fork();
        self.begin_intervals();
        self.contended.store(0, Ordering::Relaxed);
        if self.failure().is_some() {
            return;
        }
        // No thread that was lost in the fork had the state: of other Ractors only hooks do, from Ruby 4.0 on, which then
        // have the VM's lock (gc.c, `newobj_of`), and so has who forks (process.c, `rb_fork_ruby`).
        self.state.with(|state| {
            let seed = state.options.seed.map_or_else(random_seed, |seed| seed ^ u64::from(std::process::id()));
            state.reservoir.reseed(seed);
            state.reservoir.reset_counts();
            state.counters = state::Counters::default();
            state.forget_allocations();
            state.forget_peak();
            state.forget_flush_of_others(threads::current());
        });
        if self.windows.are_used() {
            self.windows_after_fork(self.main_ractor());
        } else {
            self.windows.reset_figures();
        }
    }

    /// Where the collector panicked, if it did. Its data may then be inconsistent, and is no longer used.
    pub fn failure(&self) -> Option<&'static str> {
        self.panicked.get().copied()
    }

    /// Runs `body` in a job, unless there was a panic before. Does not unwind: the caller is the VM.
    pub(super) fn guarded(&self, job: &'static str, body: impl FnOnce()) {
        let work = || {
            faults::point(job);
            body();
        };
        if self.failure().is_none() && catch_unwind(AssertUnwindSafe(work)).is_err() {
            self.panicked(job);
        }
    }

    /// After a panic, possibly in a hook: ensures that nothing is sampled any more.
    pub fn panicked(&self, place: &'static str) {
        faults::panicked(place);
        self.countdown.stop();
        // Only the first place counts.
        let _ = self.panicked.set(place);
    }

    /// After a panic, and not in a hook: removes the hooks without relying on any stored data.
    pub fn abandon(&self) {
        if self.phase.get() != Phase::Idle {
            let main = self.main_ractor();
            self.missed_collections.pause();
            self.unhook(main, self.phase.replace(Phase::Idle));
            self.end_windows(main);
            self.release_anchor();
        }
    }
}
