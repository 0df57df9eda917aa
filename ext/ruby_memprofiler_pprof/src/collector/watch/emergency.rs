//! A profile without the GVL, for when Ruby does not come to a safe point in time.
//!
//! Everything is read while the state is borrowed, so no hook changes it and no garbage collection ends its mark phase:
//! what the state refers to stays alive. But a collection that has ended it before may be moving objects, with pages
//! that nobody can read: then no object is read. Memory is taken for a buffer and the compressor, 0.5 MB, whatever the
//! number of samples.

use super::alarm::Alarm;
use super::emergency_profile::EmergencyProfile;
use super::file;
use crate::collector::Collector;
use crate::vm::ractor;
use std::fs::remove_file;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait for the state, which Ruby's threads have for parts of a flush.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long to wait for a step of a sweep. Whole sweeps and compactions take longer.
const SWEEP: Duration = Duration::from_millis(20);

/// Writes the collector's live samples to a file with the name `path`, or that with a number if it is taken. Returns
/// its name. An error of the kind `WouldBlock` says that another thread has had the state all the time, or that objects
/// cannot be read just now, which `at_any_rate` does without.
pub(super) fn write(collector: &Collector, path: &Path, alarm: &Alarm, at_any_rate: bool) -> io::Result<PathBuf> {
    if collector.failure().is_some() {
        return Err(ErrorKind::Unsupported.into());
    }
    let start = Instant::now();
    while collector.missed_collections.may_move() && start.elapsed() < SWEEP {
        thread::yield_now();
    }
    if collector.missed_collections.may_move() && !at_any_rate {
        return Err(ErrorKind::WouldBlock.into());
    }
    let path = &file::dated(path);
    let (temporary, out) = file::create_beside(path)?;
    let written = collector
        .state
        // SAFETY: the collector has not failed, so its state is kept alive.
        .look_without_gvl(PATIENCE, |state| unsafe {
            let readable = !collector.missed_collections.may_move();
            if !readable && !at_any_rate {
                return Err(ErrorKind::WouldBlock.into());
            }
            // What died in a collection that no hook saw may be gone, with its page.
            let blind = ractor::others() || collector.is_suspended() || collector.missed_collections.are_any();
            let missed = &collector.missed_collections;
            EmergencyProfile::new(state, missed, alarm, readable, !blind).write(out)
        })
        .unwrap_or(Err(ErrorKind::WouldBlock.into()))
        .and_then(|()| file::publish(&temporary, path));
    let _ = remove_file(&temporary);
    written
}
