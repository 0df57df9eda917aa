//! When no copy is made.

use super::{Failure, Limits};
use crate::faults;
use crate::vm::{gvl, ractor};
use magnus::Ruby;
use memprofiler_core::headroom::{Bound, Headroom};
use std::path::Path;

/// Fails if a copy would not work, or would endanger the program. Returns the limits to set.
pub fn check(ruby: &Ruby, limits: Limits) -> Result<Limits, Failure> {
    let limits = check_memory(limits)?;
    check_ractors(ruby)?;
    Ok(limits)
}

/// Fails if this process itself cannot have so much `memory` more.
pub fn check_own_memory(memory: u64) -> Result<(), Failure> {
    let Some(Bound { left, by }) = tightest(&headroom()) else { return Ok(()) };
    if memory <= left {
        return Ok(());
    }
    let (needed, left) = (mb(memory), left >> 20);
    Err(Failure::Refused(format!("this process may need {needed} MB more, and {by} leaves {left} MB: allow it more")))
}

/// Other Ractors run while the process is copied: their half-finished work would be in the copy.
fn check_ractors(ruby: &Ruby) -> Result<(), Failure> {
    if ractor::count(ruby)? == 1 { Ok(()) } else { Err(Failure::Refused(ractor::BESIDE_OTHERS.to_owned())) }
}

/// Needed are what the copy takes, and the pages that the program changes meanwhile, since the copy keeps the old ones.
fn check_memory(limits: Limits) -> Result<Limits, Failure> {
    let headroom = headroom();
    let Some(Bound { left, by }) = tightest(&headroom) else { return Ok(limits.with_spare(u64::MAX)) };
    // A program that works as before, with a collection or two, changes less than an eighth. Where too little memory
    // would kill it as well, it may change half.
    let changed = headroom.anonymous / if headroom.killed_together { 2 } else { 8 };
    let needed = limits.memory.saturating_add(changed);
    if needed <= left {
        return Ok(limits.with_spare(left - needed));
    }
    let instead = if limits.memory <= left {
        format!(", or use in_process: true, which needs {} MB less", mb(changed))
    } else {
        String::new()
    };
    Err(Failure::Refused(format!(
        "a copy of this process may need {} MB, {} MB of them for what the program changes meanwhile, and {by} leaves \
         {} MB: allow it more{instead}",
        mb(needed),
        mb(changed),
        left >> 20,
    )))
}

impl Limits {
    /// Those of a copy for which there are so many bytes more.
    fn with_spare(self, left: u64) -> Self {
        Self { memory: self.memory.saturating_add(self.spare.min(left)), spare: 0, ..self }
    }
}

fn headroom() -> Headroom {
    gvl::without_gvl(|| Headroom::read(Path::new("/")))
}

fn tightest(headroom: &Headroom) -> Option<Bound> {
    headroom.tightest().filter(|_| !faults::denied("headroom")).cloned()
}

fn mb(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}
