//! Whether a collector samples all the time or in windows, and why.
//!
//! An allocation costs more while a hook is on, whatever the hook does. In windows it is on for a fraction of the time
//! (`window_duty`), and samples at a rate so much higher that each allocation has the same probability. That pays where
//! a program runs for long. One that is short may end between two windows, or do its work in one.

use super::options::{Options, Sampling};
use super::{Collector, Only, Phase, hooked, windows};
use crate::vm::ractor::{self, MainRactor};
use crate::vm::{jit, safepoint};
use magnus::{Error, Ruby};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long `:auto` waits after the start: a program that loads its code is not at its usual work yet.
const SETTLING: Duration = Duration::from_secs(60);

/// How long frames are, each of which has a window, unless that is set. What bursts do is known the better the shorter
/// they are. But where a job opens or closes a window, compiled code goes on in the interpreter until its method
/// returns: a program of loops that were compiled did up to a quarter less, and half as much of it seemed to happen, as
/// with none.
const FRAME: Duration = Duration::from_millis(30);
const FRAME_WITH_JIT: Duration = Duration::from_millis(100);

/// How long it waits before it looks again whether the process has become a server.
const PAUSE: Duration = Duration::from_secs(5);

/// Whether this process is known to be a server or job runner.
static SERVICE: AtomicBool = AtomicBool::new(false);

/// Records that this process is a server or job runner. Children that it forks are as well.
pub fn announce_service() {
    SERVICE.store(true, Ordering::Relaxed);
}

/// Whether this process is known to be a server or job runner.
pub fn is_service() -> bool {
    SERVICE.load(Ordering::Relaxed)
}

/// What is in force, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// In windows, or always.
    pub windows: bool,
    /// A few words for people.
    pub reason: &'static str,
}

impl Choice {
    /// The symbol that users know it by.
    pub fn name(self) -> &'static str {
        if self.windows { Sampling::Windows } else { Sampling::Always }.name()
    }
}

/// What the choice depends on, apart from the options.
#[derive(Debug, Clone, Copy)]
struct Circumstances {
    only: Only,
    /// Whether deaths are noticed without a hook for each of them.
    mark_bits: bool,
    other_ractors: bool,
    /// Whether another collector uses windows.
    windows_taken: bool,
    /// Whether the system refused a thread for the timer, or the process ends.
    no_timer: bool,
    service: bool,
    settled: bool,
}

impl Collector {
    /// How this collector samples, or would if it were started now.
    pub fn sampling(&self) -> Choice {
        if self.phase() == Phase::Running { self.windows.choice() } else { self.preferred_sampling() }
    }

    /// How a server with this collector's options samples after its first minute.
    pub fn sampling_in_services(&self) -> Choice {
        choose(&self.options(), Circumstances { service: true, settled: true, ..self.circumstances() })
    }

    /// Changes the kind of sampling to the preferred one. The collector must be running.
    pub(super) fn adopt_sampling(&self, main: MainRactor) -> Result<(), Error> {
        let options = self.options();
        self.switch_windows(main, self.preferred_sampling(), &options)?;
        let undecided = options.sampling != Sampling::Always && !self.windows.are_used() && cfg!(ruby_gte_3_3);
        self.look_again.set(undecided.then(|| Instant::now() + PAUSE));
        Ok(())
    }

    /// Has the choice made again at the next safe point, if it is time for that. Safe in hooks.
    pub(super) fn reconsider_sampling(&self) {
        if self.look_again.get().is_some_and(|when| Instant::now() >= when) || self.windows.lost_timer() {
            safepoint::request(adopt_sampling_job);
        }
    }

    pub(super) fn preferred_sampling(&self) -> Choice {
        choose(&self.options(), self.circumstances())
    }

    fn circumstances(&self) -> Circumstances {
        Circumstances {
            only: self.only(),
            mark_bits: self.phase() == Phase::Idle || self.uses_mark_bits(),
            other_ractors: ractor::others(),
            windows_taken: self.others_use_windows(),
            no_timer: windows::has_no_timer(),
            service: is_service(),
            settled: self.started.get().is_some_and(|started| started.elapsed() >= SETTLING),
        }
    }
}

/// How long frames are unless that is set. `direct` tells whether windows open and close without a job.
pub(super) fn default_frame(direct: bool) -> Duration {
    if !direct && Ruby::get().is_ok_and(|ruby| jit::is_on(&ruby)) { FRAME_WITH_JIT } else { FRAME }
}

/// The job.
///
/// # Safety
/// Must run at a safe point of a Ruby thread.
unsafe extern "C" fn adopt_sampling_job(_: *mut c_void) {
    // Elsewhere nothing is done: the next mark phase asks again.
    // SAFETY: at a safe point, as required above.
    if let Some(main) = unsafe { MainRactor::in_job() } {
        choose_again(main);
    }
}

/// For a Ractor that is about to be created: ends windows.
pub fn before_ractor(main: MainRactor) {
    ractor::note_others();
    choose_again(main);
}

fn choose_again(main: MainRactor) {
    hooked::each(|collector| {
        if collector.phase() == Phase::Running {
            // Without memory for a hook the next flush adds it; nothing can be raised here.
            collector.guarded("choice of sampling", || drop(collector.adopt_sampling(main)));
        }
    });
}

fn choose(options: &Options, circumstances: Circumstances) -> Choice {
    let Options { sampling, sample_rate, window_duty, .. } = *options;
    let always = |reason| Choice { windows: false, reason };
    let auto = sampling == Sampling::Auto;
    if sampling == Sampling::Always {
        always("sampling is :always")
    } else if !cfg!(ruby_gte_3_3) {
        always("windows need Ruby 3.3 or later")
    } else if circumstances.only != Only::All {
        always("only one thread or fiber is sampled")
    } else if sample_rate > window_duty {
        always("sample_rate is above window_duty")
    } else if !circumstances.mark_bits {
        always("liveness is :freeobj")
    } else if circumstances.other_ractors {
        always("there are other Ractors")
    } else if circumstances.windows_taken {
        always("another collector uses windows")
    } else if circumstances.no_timer {
        always("there is no thread for a timer, or the process ends")
    } else if auto && !circumstances.service {
        always("not known to be a server or job runner")
    } else if auto && !circumstances.settled {
        always("started less than a minute ago")
    } else {
        Choice { windows: true, reason: if auto { "a server or job runner" } else { "sampling is :windows" } }
    }
}
