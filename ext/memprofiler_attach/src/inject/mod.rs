//! `require`: has a running Ruby require a file, in a thread of its own, at a point where the VM itself would run a
//! handler of signals.
//!
//! The main thread is stopped once, or a few times if it is idle, for some microseconds, to call a function that is
//! made for handlers of signals: the one that asks for a postponed job. The job creates the thread, and that calls
//! `require`.

mod arch;
mod area;
mod job;
mod living;
mod place;
mod preflight;
mod target;
mod thread;
mod visit;
mod vm;
mod wake;

use crate::failure::Failure;
use crate::interrupt;
use crate::text::print;
use job::Job;
use place::Place;
use preflight::Candidate;
use std::time::{Duration, Instant};
use target::Target;
use visit::Errand;

/// How long the file may take at least.
const LOAD_LIMIT: Duration = Duration::from_secs(30);

/// Prints what is known of process `pid`, or fails if nothing can be brought into it.
pub fn check(pid: i32) -> Result<(), Failure> {
    print(format!("{}\n", Candidate::find(pid)?.ruby.version).as_bytes())
}

/// Has process `pid` require the file `path`, as it sees it, within `timeout`, and waits until that has ended. However
/// this ends: if the failure is not pending, the process does not look for the file any more.
pub fn require(pid: i32, path: &str, timeout: Duration) -> Result<(), Failure> {
    if path.len() >= area::PATH_SIZE {
        return Err(Failure::new(format!("{path} is longer than {} bytes", area::PATH_SIZE - 1)));
    }
    interrupt::catch();
    hurry();
    let candidate = Candidate::find(pid)?;
    let target = Target::open(pid)?;
    let place = Place::find(&target, &candidate.images, &candidate.mappings, &candidate.table)
        .ok_or_else(|| Failure::new(format!("process {pid} has no room for the code")))?;
    let errand = Errand { target: &target, table: candidate.table, place: &place, living: &candidate.living };
    let mut job = Job::new(&errand, &candidate.vm);
    job.wait_for_an_earlier_one(LOAD_LIMIT)?;
    let asked = Instant::now();
    job.ask(path).and_then(|()| job.reach(asked + timeout)).or_else(|failure| job.take_back(failure))?;
    let reached = asked.elapsed();
    job.load(timeout.max(LOAD_LIMIT)).map_err(|failure| job.unless_ended(failure))?;
    job.print(reached, asked.elapsed());
    Ok(())
}

/// Lets this tool run before everything else, if it may: on a busy machine it would otherwise have to wait for a
/// processor while it holds the thread, for milliseconds.
fn hurry() {
    // The kernel's `sched_param`: musl's is another, and its function does nothing.
    let lowest: libc::c_int = 1;
    // SAFETY: the kernel only reads the parameter. If this is not allowed, nothing changes.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const lowest) };
}
