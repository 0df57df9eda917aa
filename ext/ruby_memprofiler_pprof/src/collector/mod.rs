//! The profiler's state and its three events: an allocation, a death, a flush.

pub mod backtrace_job;
pub mod cell;
pub mod classes;
mod events;
pub mod exiting;
pub mod flush;
pub mod hooked;
pub mod ledger;
mod lifecycle;
mod marking;
mod missed_collections;
pub mod mute;
mod naming_job;
mod only;
pub mod options;
pub mod pins;
pub mod resolve;
mod retainers;
pub mod sample_types;
pub mod sampling;
pub mod sites;
mod stack_end;
pub mod stacks;
mod state;
mod stats;
mod totals;
pub mod walker_check;
pub mod watch;
pub mod windows;

pub use flush::{FlushFailure, FlushOptions, Flushed};
pub use hooked::hooked;
pub use only::Only;
pub use retainers::{Place, Question, RetainersFailure};
pub use state::State;
pub use stats::{ruby_description, tag_comments};

use cell::HookCell;
use memprofiler_core::readers::Readers;
use memprofiler_core::reservoir::Countdown;
use missed_collections::MissedCollections;
use options::Options;
use rb_sys::VALUE;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use windows::Windows;

/// Which hooks are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// None; nothing is known.
    Idle,
    /// Samples allocations and tracks deaths.
    Running,
    /// Tracks deaths until the next flush.
    Stopped,
    /// None until the next flush. What is known about live objects holds until the next garbage collection.
    Detached,
}

/// One profiler, shared by the Ruby object that owns it and the hooks.
#[derive(Debug)]
pub struct Collector {
    /// The allocations until the next sample; the state's reservoir restarts it.
    countdown: Arc<Countdown>,
    state: HookCell<State>,
    /// The Ruby object, for the GC's write barriers; valid while there are hooks, which pin it.
    holder: Cell<VALUE>,
    phase: Cell<Phase>,
    /// When it was last started.
    started: Cell<Option<Instant>>,
    missed_collections: MissedCollections,
    /// When the interval of each reader's next flush began.
    interval_starts: [Cell<Instant>; Readers::MOST],
    windows: Windows,
    /// Samples lost because the state was in use.
    contended: AtomicU64,
    /// Whether the hook is off until the next safe point.
    suspended: AtomicBool,
    /// How often that happened.
    stack_ends: AtomicU64,
    /// Where a panic happened, if one did: the collector is then off for good.
    panicked: OnceLock<&'static str>,
    /// Why the collector stopped by itself, if it did.
    disarmed: Cell<Option<&'static str>>,
    /// When to look again whether windows are to be used.
    look_again: Cell<Option<Instant>>,
}

// SAFETY: every access is ordered by the GVL, or by `state` where other Ractors may take part.
unsafe impl Send for Collector {}
// SAFETY: shared access is ordered in the same way. Only the main Ractor has access to a running collector. What other
// Ractors' hooks share with its API, from Ruby 4.0 on, is atomic, or is written only when no hook can be running. The
// thread that watches the memory has no GVL: it borrows `state`, and of the rest only reads what is atomic.
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
        let state = State::new(options, seed);
        Self {
            countdown: Arc::clone(state.reservoir.countdown()),
            state: HookCell::new(state),
            holder: Cell::new(rb_sys::Qnil as VALUE),
            phase: Cell::new(Phase::Idle),
            started: Cell::new(None),
            missed_collections: MissedCollections::default(),
            interval_starts: std::array::from_fn(|_| Cell::new(Instant::now())),
            windows: Windows::default(),
            contended: AtomicU64::new(0),
            suspended: AtomicBool::new(false),
            stack_ends: AtomicU64::new(0),
            panicked: OnceLock::new(),
            disarmed: Cell::new(None),
            look_again: Cell::new(None),
        }
    }

    /// Which hooks are on.
    pub fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Whether it was ever started.
    pub fn was_started(&self) -> bool {
        self.started.get().is_some()
    }

    /// The options in force.
    pub fn options(&self) -> Options {
        self.state.with(|state| state.options.clone())
    }

    /// Replaces the options. A new rate applies from the next allocation on.
    pub fn configure(&self, options: Options) {
        if self.failure().is_some() {
            return self.state.with(|state| state.options = options);
        }
        self.state.with(|state| {
            let rate = options.sample_rate;
            let changed = rate != state.options.sample_rate;
            let seed = options.seed.filter(|_| options.seed != state.options.seed);
            state.configure(options);
            if let Some(seed) = seed {
                state.reservoir.reseed(seed);
            }
            if changed {
                state.set_rate(rate);
            }
        });
        if self.phase.get() == Phase::Running {
            // Without memory for another hook the next flush adds it.
            let _ = self.adopt_sampling(self.main_ractor());
        }
    }

    /// Whose allocations are sampled.
    pub fn only(&self) -> Only {
        self.state.with(|state| state.only)
    }

    /// Adds a reader; None if there are too many.
    pub fn add_reader(&self) -> Option<usize> {
        let number = self.state.with(State::add_reader)?;
        self.interval_starts[number].set(Instant::now());
        Some(number)
    }

    /// Removes a reader other than the first.
    pub fn remove_reader(&self, number: usize) {
        if self.failure().is_none() {
            self.state.with(|state| state.remove_reader(Readers::only(number)));
        }
    }

    /// Whether there is such a reader.
    pub fn has_reader(&self, number: usize) -> bool {
        number < Readers::MOST && self.state.with(|state| state.readers.contain(Readers::only(number)))
    }

    fn uses_mark_bits(&self) -> bool {
        self.state.with(|state| state.mark_bits.is_some())
    }

    fn begin_intervals(&self) {
        self.interval_starts.iter().for_each(|start| start.set(Instant::now()));
    }

    /// Bytes held outside Ruby's heap.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + if self.failure().is_some() { 0 } else { self.state.with(|state| state.bytes()) }
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
