//! The profiler's state and its three events: an allocation, a death, a flush.

mod capture;
mod cell;
mod collections;
mod contexts;
mod deferred;
mod events;
mod extract;
mod flush;
mod hooked;
mod index_map;
mod keys;
pub mod mute;
pub mod options;
mod resolve;
mod state;
mod stats;
pub mod walker;

pub use flush::{FlushOptions, Flushed};
pub use hooked::hooked;
pub use state::State;

use crate::vm::hooks::{self, END_MARK, END_SWEEP, FREEOBJ, NEWOBJ};
use crate::vm::marks::Marks;
use crate::vm::{gc, keeper, waiters};
use cell::HookCell;
use collections::Collections;
use magnus::rb_sys::AsRawValue;
use magnus::{Ruby, Value};
use memprofiler_core::live_set::LiveSet;
use options::{Liveness, Options};
use rb_sys::VALUE;
use std::cell::Cell;
use std::ffi::c_void;
use std::ops::Range;
use std::time::Instant;

/// Which hooks are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// None: nothing is known.
    Idle,
    /// Allocations are sampled and deaths followed.
    Running,
    /// Deaths are followed until the next flush.
    Stopped,
}

/// One profiler, shared by the Ruby object that owns it and the hooks.
#[derive(Debug)]
pub struct Collector {
    /// Allocations up to and including the next sample.
    countdown: Cell<u64>,
    state: HookCell<State>,
    /// The Ruby object, for the GC's write barriers; valid while there are hooks, when it is pinned.
    holder: Cell<VALUE>,
    phase: Cell<Phase>,
    started: Cell<bool>,
    collections: Collections,
    /// When the interval of the next flush began.
    interval_start: Cell<Instant>,
    /// Samples that found the state in use.
    contended: Cell<u64>,
    /// Which hook panicked, if one did: the collector is off for good then.
    panicked: Cell<Option<&'static str>>,
    /// Why the collector stopped by itself, if it did.
    disarmed: Cell<Option<&'static str>>,
}

// SAFETY: every access is ordered by the GVL, or by `state` where other Ractors may take part.
unsafe impl Send for Collector {}
// SAFETY: as above. The countdown is only written in NEWOBJ hooks, which the VM orders, and before they are on.
unsafe impl Sync for Collector {}

impl Default for Collector {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Collector {
    /// A collector that does nothing yet.
    pub fn new(options: Options) -> Self {
        let seed = options.seed.unwrap_or_else(random_seed);
        Self {
            countdown: Cell::new(u64::MAX),
            state: HookCell::new(State::new(options, seed)),
            holder: Cell::new(rb_sys::Qnil as VALUE),
            phase: Cell::new(Phase::Idle),
            started: Cell::new(false),
            collections: Collections::default(),
            interval_start: Cell::new(Instant::now()),
            contended: Cell::new(0),
            panicked: Cell::new(None),
            disarmed: Cell::new(None),
        }
    }

    /// Which hooks are on.
    pub fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Whether it was ever started.
    pub fn was_started(&self) -> bool {
        self.started.get()
    }

    /// The options in force.
    pub fn options(&self) -> Options {
        self.state.with(|state| state.options.clone())
    }

    /// Replaces the options. A changed rate holds from the next allocation on.
    pub fn configure(&self, options: Options) {
        let gap = self.state.with(|state| {
            let rate = options.sample_rate;
            let changed = rate != state.options.sample_rate;
            let seed = options.seed.filter(|_| options.seed != state.options.seed);
            state.configure(options);
            if let Some(seed) = seed {
                state.sampler.reseed(seed);
            }
            changed.then(|| {
                state.set_rate(rate);
                state.sampler.next_gap()
            })
        });
        if let Some(gap) = gap {
            self.countdown.set(gap);
        }
    }

    /// Begins to sample allocations and follow deaths. `holder` is the Ruby object that owns this collector.
    ///
    /// # Safety
    /// On the main Ractor.
    pub unsafe fn start(&self, ruby: &Ruby, holder: Value) {
        if self.phase.get() == Phase::Running {
            return;
        }
        self.disarmed.set(None);
        self.started.set(true);
        waiters::watch();
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
            self.interval_start.set(Instant::now());
            // SAFETY: the caller's promise; `anchor` keeps the collector alive and in place.
            unsafe { self.follow_deaths(ruby) };
        }
        self.countdown.set(self.state.with(|state| state.sampler.next_gap()));
        // SAFETY: as above.
        unsafe { hooks::add(events::on_newobj, NEWOBJ, self.hook_data()) };
        self.phase.set(Phase::Running);
    }

    /// Adds the hooks that tell of deaths.
    ///
    /// # Safety
    /// On the main Ractor; the collector must be anchored.
    unsafe fn follow_deaths(&self, ruby: &Ruby) {
        self.collections.begin(ruby);
        // SAFETY: the caller's promise.
        unsafe {
            hooks::add(events::on_end_mark, END_MARK, self.hook_data());
            hooks::add(events::on_end_sweep, END_SWEEP, self.hook_data());
            if !self.uses_mark_bits() {
                hooks::add(events::on_freeobj, FREEOBJ, self.hook_data());
            }
        }
    }

    fn uses_mark_bits(&self) -> bool {
        self.state.with(|state| state.marks.is_some())
    }

    /// If deaths may have gone unnoticed, forgets which objects are alive, and sees to it that the hooks are on again.
    fn check_collections(&self, ruby: &Ruby) {
        let missed = self.collections.missed(ruby);
        if missed == 0 || self.phase.get() == Phase::Idle {
            return;
        }
        self.state.with(|state| {
            state.counters.missed_collections += u64::from(missed);
            state.distrust();
        });
        // Adding a hook makes the VM look at which events are wanted, which undoes Bug #19112.
        // SAFETY: as in `stop`; a collector that is not idle is anchored.
        unsafe {
            self.unfollow_deaths();
            self.follow_deaths(ruby);
        }
    }

    /// Removes the hooks that tell of deaths.
    ///
    /// # Safety
    /// On the main Ractor.
    unsafe fn unfollow_deaths(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            hooks::remove(events::on_end_mark, self.hook_data());
            hooks::remove(events::on_end_sweep, self.hook_data());
            hooks::remove(events::on_freeobj, self.hook_data());
        }
    }

    /// Ends sampling. Deaths are followed on, so that the next flush tells the truth.
    pub fn stop(&self) {
        if self.phase.get() != Phase::Running {
            return;
        }
        // SAFETY: a running collector was started on the main Ractor, and is not shareable with others.
        unsafe { hooks::remove(events::on_newobj, self.hook_data()) };
        self.phase.set(Phase::Stopped);
        self.state.with(|state| state.capture.forget_contexts());
    }

    /// Stops by the profiler's own decision.
    pub fn disarm(&self, reason: &'static str) {
        if self.phase.get() == Phase::Running {
            self.stop();
            self.disarmed.set(Some(reason));
        }
    }

    /// Takes the last hook off and forgets all samples.
    fn disconnect(&self) {
        // SAFETY: as in `stop`.
        unsafe { self.unfollow_deaths() };
        self.phase.set(Phase::Idle);
        self.state.with(State::clear);
        self.release_anchor();
    }

    /// In a forked child: the live set stays, while counters, interval and random numbers begin anew.
    pub fn after_fork(&self) {
        waiters::forget();
        self.interval_start.set(Instant::now());
        let gap = self.state.with(|state| {
            let seed = state.options.seed.map_or_else(random_seed, |seed| seed ^ u64::from(std::process::id()));
            state.sampler.reseed(seed);
            state.counters = state::Counters::default();
            state.forget_allocations();
            state.sampler.next_gap()
        });
        self.countdown.set(gap);
    }

    /// The reason why the collector must not go on, if there is one.
    pub fn failure(&self) -> Option<&'static str> {
        self.panicked.get()
    }

    /// In a hook that has panicked: makes sure that it does nothing from now on.
    fn panicked(&self, hook: &'static str) {
        self.countdown.set(u64::MAX);
        self.panicked.set(Some(hook));
    }

    /// Marks what the state refers to, apart from what its keepers mark.
    ///
    /// # Safety
    /// Only as the mark function of the Ruby object.
    pub unsafe fn mark(&self) {
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
    unsafe fn make_keepers(&self, holder: VALUE) {
        /// How many to have in reserve.
        const SPARE: usize = 4;
        let wanted = |state: &mut State| {
            let numbers = state.capture.stacks.function_bound() / capture::KEPT_FUNCTIONS + SPARE;
            (state.capture.keepers.len() < numbers).then_some(state.capture.keepers.len())
        };
        while let Some(number) = self.state.with(wanted) {
            // SAFETY: the collector is in a box of its own that is freed with the holder.
            let keeper = unsafe { keeper::new(std::ptr::from_ref(self).cast(), holder, number, Self::mark_part) };
            self.state.with(|state| state.capture.keepers.push(keeper));
            // What the collector marked itself until now, the keeper has to tell the GC of as its own.
            self.state.with(|state| {
                // SAFETY: all alive; the keeper was just made and is referred to from this stack.
                unsafe { gc::write_barrier(holder, keeper) };
                for value in state.function_references(Self::part(number)) {
                    // SAFETY: as above.
                    unsafe { gc::write_barrier(keeper, value) };
                }
            });
        }
    }

    /// The ids of the functions that keeper number `number` keeps alive.
    fn part(number: usize) -> Range<usize> {
        number * capture::KEPT_FUNCTIONS..(number + 1) * capture::KEPT_FUNCTIONS
    }

    /// Marks what keeper number `number` keeps alive.
    ///
    /// # Safety
    /// Only as the mark function of a keeper of the collector `owner`.
    unsafe fn mark_part(owner: *const c_void, number: usize) {
        // SAFETY: a keeper keeps its collector alive.
        let collector = unsafe { &*owner.cast::<Self>() };
        let start = Instant::now();
        collector.state.with(|state| {
            for value in state.function_references(Self::part(number)) {
                // SAFETY: in a mark function.
                unsafe { gc::mark(value) };
            }
            state.spent_marking(start.elapsed());
        });
    }

    /// Follows sampled objects to where compaction has moved them.
    ///
    /// # Safety
    /// Only as the compact function of the Ruby object.
    pub unsafe fn compact(&self) {
        self.state.with(|state| {
            // SAFETY: in a compact function; samples in the live set were alive when compaction began.
            state.live.relocate(|address| unsafe { gc::location(address as VALUE) } as u64);
        });
    }

    /// Bytes held outside of Ruby's heap.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.state.with(|state| state.bytes())
    }
}

fn random_seed() -> u64 {
    use rand::TryRng;
    // Without entropy the time will do: the seed guards against aliasing, not against people.
    rand::rngs::SysRng.try_next_u64().unwrap_or_else(|_| {
        let time = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
        time.unwrap_or_default().as_nanos() as u64
    })
}
