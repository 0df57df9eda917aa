//! Why the watcher asks for a profile.

use memprofiler_core::watch::{Reading, Reason};
use std::fmt::{Display, Formatter};

/// Why a profile is to be taken, and what the memory was then.
#[derive(Debug, Clone, Copy)]
pub struct Alarm {
    /// Why.
    pub reason: Reason,
    /// What was read.
    pub reading: Reading,
    /// How fast memory grew, in bytes per second.
    pub growth: f64,
    /// Whether this process is what fills the memory.
    pub own: bool,
    /// Whether no other one follows in this process.
    pub last: bool,
}

impl Alarm {
    /// What was too much, in bytes, and of which limit if it was a part of one.
    pub fn used(&self) -> (u64, Option<u64>) {
        match self.reading {
            Reading { usage: Some(usage), limit: Some(limit), .. } => (usage, Some(limit)),
            Reading { resident, .. } => (resident, None),
        }
    }
}

impl Display for Alarm {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.reason.name())?;
        match self.used() {
            (usage, Some(limit)) => write!(f, "{usage} of {limit} bytes used")?,
            (resident, None) => write!(f, "{resident} bytes resident")?,
        }
        write!(f, ", growing by {:.0} bytes per second", self.growth)
    }
}
