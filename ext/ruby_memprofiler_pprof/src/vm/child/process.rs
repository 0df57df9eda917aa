//! A copy of this process, as its parent sees it.

use crate::faults;
use crate::vm::{gvl, signals};
use std::io;
use std::mem::zeroed;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Seconds and nanoseconds.
pub type CpuTime = (i64, libc::c_long);

/// A copy that may be running. It is killed when dropped.
#[derive(Debug)]
pub struct Process {
    id: libc::pid_t,
    /// Whose copy it is.
    parent: libc::pid_t,
    reaped: bool,
}

impl Process {
    /// Copies this process as it is, and lets the copy run `inside`. Also returns how long that took. The copy consists
    /// of this thread alone, in which all signals are blocked.
    ///
    /// It is no fork: neither Ruby nor the C library hears of it, and its parent gets no signal when it ends, nor its
    /// status unless it asks for such children, which Ruby does not.
    pub fn copy(inside: impl FnOnce(libc::pid_t) -> std::convert::Infallible) -> io::Result<(Self, Duration)> {
        // SAFETY: the function only returns a number.
        let parent = unsafe { libc::getpid() };
        // The first use of this library's thread-local variables takes memory from malloc: it must not be in the copy.
        drop(std::hash::RandomState::new());
        let (id, pause) = signals::with_all_blocked(|| {
            let began = Instant::now();
            if faults::denied("clone") {
                return (Err(io::Error::from_raw_os_error(libc::EPERM)), Duration::ZERO);
            }
            // SAFETY: without flags the copy has memory of its own, with this very stack; no signal (0) announces its
            // end. The order of the arguments differs from system to system, but all are 0.
            let id = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) };
            match id {
                0 => match inside(parent) {},
                -1 => (Err(io::Error::last_os_error()), Duration::ZERO),
                id => (Ok(id as libc::pid_t), began.elapsed()),
            }
        });
        Ok((Self { id: id?, parent, reaped: false }, pause))
    }

    /// Whether this process has become another one since: a signal handler may fork in a thread that waits.
    pub fn is_foreign(&self) -> bool {
        // SAFETY: the function only returns a number.
        self.parent != unsafe { libc::getpid() }
    }

    /// The processor time that it has used.
    pub fn cpu_time(&self) -> Option<CpuTime> {
        // SAFETY: the clock of a process is named like this, and the function fills the struct.
        unsafe {
            let mut time: libc::timespec = zeroed();
            (libc::clock_gettime((!self.id << 3) | 2, &raw mut time) == 0).then_some((time.tv_sec, time.tv_nsec))
        }
    }

    /// Waits for its end; None if a signal has interrupted that.
    pub fn wait(&mut self) -> Option<ExitStatus> {
        let mut status = 0;
        // SAFETY: the function fills the number. The id is the copy's as long as nobody has asked for its status.
        let id = unsafe { libc::waitpid(self.id, &raw mut status, libc::__WALL) };
        if id < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
            return None;
        }
        self.reaped = true;
        Some(ExitStatus::from_raw(status))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.reaped || self.is_foreign() {
            return;
        }
        // SAFETY: the id is the copy's as long as nobody has asked for its status.
        unsafe { libc::kill(self.id, libc::SIGKILL) };
        // The kernel takes a while to free its memory.
        gvl::without_gvl(|| while self.wait().is_none() {});
    }
}
