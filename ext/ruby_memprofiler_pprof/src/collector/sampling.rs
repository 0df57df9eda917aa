//! Whether a collector samples all the time or in windows, and why.
//!
//! An allocation costs more while a hook is on, whatever the hook does. In windows it is on for a fraction of the time
//! (`window_duty`), and samples at a rate so much higher that each allocation has the same probability. That pays where
//! a program runs for long. One that is short may end between two windows, or do its work in one.

use super::options::{Options, Sampling};
use super::{Collector, Only};
use crate::vm::ractor;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether the hooks open windows.
const IMPLEMENTED: bool = false;

/// How long `:auto` waits after the start: a program that loads its code is not at its usual work yet.
const SETTLING: Duration = Duration::from_secs(60);

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
    other_ractors: bool,
    service: bool,
    settled: bool,
}

impl Collector {
    /// How this collector is to sample now. Reads atomics, cells and the state, so it is not for hooks.
    pub fn sampling(&self) -> Choice {
        let settled = self.started.get().is_some_and(|started| started.elapsed() >= SETTLING);
        let (only, other_ractors, service) = (self.only(), ractor::others(), is_service());
        choose(&self.options(), Circumstances { only, other_ractors, service, settled })
    }

    /// How a server with this collector's options samples after its first minute.
    pub fn sampling_in_services(&self) -> Choice {
        let (only, other_ractors) = (Only::All, ractor::others());
        choose(&self.options(), Circumstances { only, other_ractors, service: true, settled: true })
    }
}

fn choose(options: &Options, circumstances: Circumstances) -> Choice {
    let Options { sampling, sample_rate, window_duty, .. } = *options;
    let always = |reason| Choice { windows: false, reason };
    let auto = sampling == Sampling::Auto;
    if sampling == Sampling::Always {
        always("sampling is :always")
    } else if !cfg!(ruby_gte_3_3) {
        always("windows need Ruby 3.3 or later")
    } else if !IMPLEMENTED {
        always("this version has no windows yet")
    } else if circumstances.only != Only::All {
        always("only one thread or fiber is sampled")
    } else if sample_rate > window_duty {
        always("sample_rate is above window_duty")
    } else if auto && sample_rate > window_duty / 2.0 {
        // Within windows nearly every allocation would be sampled, which costs as much as they save.
        always("sample_rate is above half of window_duty")
    } else if circumstances.other_ractors {
        always("there are other Ractors")
    } else if auto && !circumstances.service {
        always("not known to be a server or job runner")
    } else if auto && !circumstances.settled {
        always("started less than a minute ago")
    } else {
        Choice { windows: true, reason: if auto { "a server or job runner" } else { "sampling is :windows" } }
    }
}
