//! Stops a process for a moment.

use super::activity::{Linux, stat, state_letter};
use crate::failure::Failure;
use crate::process::{self, Status};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use std::{fs, io, ptr};

/// How long all threads together may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(3);

/// All threads of a process are stopped until this is dropped. Should this program die, the kernel lets them go on.
#[derive(Debug)]
pub struct Paused {
    /// What each did before, and the signal that was about to be delivered to it, or 0.
    threads: HashMap<i32, (Linux, libc::c_int)>,
}

impl Paused {
    /// Stops process `pid`. If that fails, a thread that has not stopped yet goes on only once this program has ended.
    pub fn new(pid: i32) -> Result<Self, Failure> {
        if let Some(tracer) = Status::of(pid)?.tracer() {
            // SAFETY: has no arguments, and cannot fail.
            let ours = tracer == unsafe { libc::gettid() };
            // It was killed while it was stopped before, and so could not be let go.
            return Err(if ours {
                process::explain(pid, &io::Error::from_raw_os_error(libc::ESRCH))
            } else {
                traced(&format!("process {pid}"), tracer)
            });
        }
        let mut this = Self { threads: HashMap::new() };
        let deadline = Instant::now() + STOP_LIMIT;
        // Threads may begin others while they are stopped one by one.
        loop {
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).map_err(|error| process::explain(pid, &error))?;
            let tasks = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
            let new: Vec<i32> = tasks.filter(|tid| !this.threads.contains_key(tid)).collect();
            if new.is_empty() {
                return Ok(this);
            }
            for tid in new {
                let before = stat(pid, tid).unwrap_or_default();
                let state = if state_letter(&before) == Some('R') { Linux::Runs } else { Linux::Waits };
                match stop(tid, deadline) {
                    Ok(Some(signal)) => _ = this.threads.insert(tid, (state, signal)),
                    Ok(None) => return Err(late(pid, tid)),
                    // That of a main thread may be listed up to the end of the others.
                    Err(error) if has_ended(pid, tid, &error) => _ = this.threads.insert(tid, (state, 0)),
                    Err(error) => return Err(refused(pid, tid, &error)),
                }
            }
        }
    }

    /// What a thread did before it was stopped.
    pub fn state_of(&self, tid: i32) -> Linux {
        self.threads.get(&tid).map_or(Linux::Unknown, |&(state, _)| state)
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        for (&tid, &(_, signal)) in &self.threads {
            // SAFETY: the kernel follows neither pointer; the second is the number of a signal. The thread is stopped,
            // or has ended, upon which the call fails.
            unsafe { libc::ptrace(libc::PTRACE_DETACH, tid, ptr::null_mut::<libc::c_void>(), signal as usize) };
        }
    }
}

/// Whether a thread cannot be stopped since it has ended: of one that is still listed, the kernel says EPERM.
fn has_ended(pid: i32, tid: i32, error: &io::Error) -> bool {
    let is_gone = |error: &io::Error| matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT));
    is_gone(error)
        || match stat(pid, tid) {
            Ok(stat) => matches!(state_letter(&stat), Some('Z' | 'X')),
            Err(error) => is_gone(&error),
        }
}

/// Why the kernel does not let this program stop a thread.
fn refused(pid: i32, tid: i32, error: &io::Error) -> Failure {
    match Status::of(tid).ok().and_then(|status| status.tracer()) {
        Some(tracer) => traced(&format!("thread {tid} of process {pid}"), tracer),
        None => process::explain(pid, error),
    }
}

fn traced(what: &str, tracer: i32) -> Failure {
    Failure::new(format!("{what} is already traced, by process {tracer}: leave out --pause"))
}

/// The failure of a thread to stop in time.
fn late(pid: i32, tid: i32) -> Failure {
    let state = Status::of(tid).map(|status| status.field("State").to_owned()).unwrap_or_default();
    Failure::new(format!(
        "thread {tid} of process {pid} did not stop within {} s: it is in the kernel, in state {state}: leave out --pause",
        STOP_LIMIT.as_secs()
    ))
}

/// Stops thread `tid` without a signal, and waits until it has. Returns the signal at whose delivery it stopped, if it
/// was that, or 0; None if the deadline was first.
fn stop(tid: i32, deadline: Instant) -> io::Result<Option<libc::c_int>> {
    let null = ptr::null_mut::<libc::c_void>();
    // SAFETY: neither call takes a pointer that the kernel would follow.
    unsafe {
        if libc::ptrace(libc::PTRACE_SEIZE, tid, null, null) < 0
            || libc::ptrace(libc::PTRACE_INTERRUPT, tid, null, null) < 0
        {
            return Err(io::Error::last_os_error());
        }
    }
    match process::next_stop(tid, deadline)? {
        None => Ok(None),
        Some(status) if !libc::WIFSTOPPED(status) => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        Some(status) if status >> 16 == libc::PTRACE_EVENT_STOP => Ok(Some(0)),
        Some(status) => Ok(Some(libc::WSTOPSIG(status))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::State;
    use std::process::Command;
    use std::thread::yield_now;

    #[test]
    fn knows_what_was_killed_while_it_was_stopped() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id() as i32;
        let paused = Paused::new(pid).unwrap();
        child.kill().unwrap();
        while Status::of(pid).unwrap().state() != State::Ended {
            yield_now();
        }
        // It cannot be let go any more.
        drop(paused);
        assert_eq!(Paused::new(pid).unwrap_err(), Failure::new(format!("process {pid} has ended")));
        child.wait().unwrap();
    }
}
