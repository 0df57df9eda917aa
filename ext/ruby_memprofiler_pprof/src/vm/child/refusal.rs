//! When no copy is made.

use super::{Failure, Limits};
use crate::faults;
use crate::vm::{ractor, threads};
use magnus::Ruby;
use memprofiler_core::headroom::Headroom;
use std::path::Path;

/// Fails if a copy would not work, or would endanger the program.
pub fn check(ruby: &Ruby, limits: Limits) -> Result<(), Failure> {
    check_memory(limits)?;
    check_ractors(ruby)
}

/// Other Ractors run while the process is copied: their half-finished work would be in the copy.
fn check_ractors(ruby: &Ruby) -> Result<(), Failure> {
    if ractor::count(ruby)? == 1 { Ok(()) } else { Err(Failure::Refused(ractor::BESIDE_OTHERS.to_owned())) }
}

/// Needed are what the copy takes, and the pages that the program changes meanwhile, since the copy keeps the old ones.
fn check_memory(limits: Limits) -> Result<(), Failure> {
    let headroom = threads::without_gvl(|| Headroom::read(Path::new("/")));
    let Some(tightest) = headroom.tightest().filter(|_| !faults::denied("headroom")) else { return Ok(()) };
    // A program that works as before, with a collection or two, changes less than an eighth. Where too little memory
    // would kill it as well, it may change half.
    let changed = headroom.anonymous / if headroom.killed_together { 2 } else { 8 };
    let needed = limits.memory.saturating_add(changed);
    if needed <= tightest.left {
        return Ok(());
    }
    let mb = |bytes: u64| bytes.div_ceil(1 << 20);
    Err(Failure::Refused(format!(
        "a copy of this process may need {} MB, {} MB of them for what the program changes meanwhile, and {} leaves \
         {} MB: allow it more, or use in_process: true, which needs {} MB less",
        mb(needed),
        mb(changed),
        tightest.by,
        tightest.left >> 20,
        mb(changed),
    )))
}
