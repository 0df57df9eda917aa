//! A profile before the kernel kills the process for want of memory.
//!
//! A native thread ([`watcher`]) notices that memory runs short and wakes a Ruby thread, which has been waiting in
//! [`wait`] and takes the profile. So that this one gets the GVL soon, whoever runs Ruby code meanwhile is asked at
//! each safe point to make way for it. If it does not, since a C function keeps the GVL or a garbage collection does
//! not end, the native thread writes what can be read without the GVL ([`emergency`]).

mod alarm;
mod emergency;
mod emergency_profile;
mod file;
mod numbering;
mod shared;
mod watcher;

pub use alarm::Alarm;

use super::Collector;
use crate::vm::{gvl, memory, safepoint, threads};
use magnus::Error;
use memprofiler_core::watch::{Level, Source};
use shared::{Outcome, Shared};
use std::io;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What the process's watcher shares with Ruby; null before the first one, that of its parent in a forked child. Never
/// freed: the threads of a watcher may use theirs after another one has begun.
static CURRENT: AtomicPtr<Shared> = AtomicPtr::new(std::ptr::null_mut());

/// The watcher of this process.
fn current() -> Option<&'static Shared> {
    // SAFETY: null, or what `begin` has stored, which is never freed.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }.filter(|shared| shared.is_of_this_process())
}

/// The watcher whose profiles this thread takes: a former one, if another has begun while it takes one.
fn served() -> Option<&'static Shared> {
    let thread = threads::current();
    iter::successors(current(), |shared| shared.former).find(|shared| shared.is_served_by(thread))
}

/// Watches the memory of this process from now on, in place of an earlier watcher. Returns its number, for [`wait`];
/// None, without a watcher, if the level is a part of a limit and there is none. `path` is the name of the file to
/// write in case that no Ruby thread gets the GVL in time, until [`wait`] gives another one.
///
/// # Safety
/// The collector must exist as long as the process.
pub unsafe fn begin(collector: *const Collector, level: Level, path: PathBuf) -> io::Result<Option<u64>> {
    end();
    let source = Source::open(Path::new("/"), memory::page_size());
    match level {
        Level::Part(_) if !source.has_limit() => return Ok(None),
        Level::Resident(_) if !source.sees_process() => {
            return Err(io::Error::other("/proc/self/statm cannot be read"));
        }
        _ => {}
    }
    safepoint::prepare();
    // SAFETY: it exists as long as the process, as required above.
    let collector: &'static Collector = unsafe { &*collector };
    let pointer = Box::into_raw(Box::new(Shared::new(collector, path, source, current())));
    // SAFETY: it was just made, and is never freed.
    let shared: &'static Shared = unsafe { &*pointer };
    watcher::start(shared, level).map_err(|reason| {
        shared.use_up_source(|_| ());
        io::Error::other(format!("no thread to watch it: {reason}"))
    })?;
    CURRENT.store(pointer, Ordering::Release);
    Ok(Some(shared.number))
}

/// Stops watching. When this returns the watcher neither calls the VM nor reads what it has any more.
pub fn end() {
    if let Some(shared) = current() {
        shared.stop();
    }
}

/// Whether the watcher, if there is one, reads this collector.
pub fn reads(collector: &Collector) -> bool {
    current().is_some_and(|shared| std::ptr::eq(shared.collector, collector))
}

/// For a forked child: closes the files of its parent's watcher. Must be called right after the fork, before the
/// program's own code can close them and open others.
pub fn after_fork() {
    let shared = CURRENT.load(Ordering::Acquire);
    if current().is_none() && !shared.is_null() {
        // SAFETY: what `begin` has stored, which is never freed. The threads that used it are the parent's: only this
        // one is left, it is in no function of this module, and `current` gives it no other reference.
        let source = unsafe { &mut (*shared).source };
        // Not locked: the parent's watcher had the lock, and no thread of this process releases it.
        drop(source.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Waits, on a Ruby thread without the GVL, until a profile is to be taken for the watcher of this number, and then
/// expects [`done`] from this thread. None once the watcher was stopped, or another one has begun. Fails with what was
/// raised in this thread. `path` is the name of the file to write in case that this thread does not get the GVL in
/// time.
pub fn wait(number: u64, path: PathBuf) -> Result<Option<Alarm>, Error> {
    let Some(shared) = current().filter(|shared| shared.number == number) else { return Ok(None) };
    shared.serve(threads::current(), path);
    loop {
        let outcome = gvl::wait_for(|| shared.wait(), &|| shared.interrupt());
        gvl::check_interrupts()?;
        match outcome {
            Some(Outcome::Alarm(alarm)) => {
                shared.take(alarm);
                return Ok(Some(alarm));
            }
            Some(Outcome::Stopped) => return Ok(None),
            Some(Outcome::Interrupted) | None => {}
        }
    }
}

/// This thread waits until other processes have taken their profiles, or no longer does.
pub fn queue(waits: bool) {
    if let Some(shared) = served() {
        shared.queue(waits);
    }
}

/// The profile that this thread was to take was taken, or cannot be. Returns the file that was written without the GVL
/// meanwhile, if one was.
pub fn done() -> Option<PathBuf> {
    served()?.done()
}

/// What the profile that this thread takes says about the reason; None if it takes it for another one.
pub fn remark() -> Option<String> {
    served()?.remark()
}
