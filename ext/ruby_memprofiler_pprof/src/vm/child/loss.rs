//! Why a copy did not answer, in words.

use super::Limits;
use super::inside::Ending;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// Why there is no answer.
#[derive(Debug)]
pub struct Loss {
    /// Completes "the copy of this process …".
    pub reason: String,
    /// Whether another copy may answer.
    pub try_again: bool,
}

impl Loss {
    /// A loss that may have been bad luck.
    pub fn by_chance(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), try_again: true }
    }

    /// A loss that would happen again.
    pub fn for_good(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), try_again: false }
    }

    /// The time was up.
    pub fn late(wall: Duration) -> Self {
        Self::for_good(format!("did not answer within {} s: allow it more with timeout:", wall.as_secs_f64()))
    }

    /// There is no copy, because the system refused this `call`.
    pub fn before(call: &str, error: &io::Error) -> Self {
        let hint = match error.raw_os_error() {
            Some(libc::EPERM | libc::ENOSYS) => "; perhaps a security policy of the container forbids it (seccomp)",
            Some(libc::EAGAIN) => "; perhaps the limit on processes is reached (ulimit -u, pids.max)",
            Some(libc::ENOMEM) => "; memory is short, or the kernel promises no more (vm.overcommit_memory)",
            Some(libc::EMFILE) => "; the limit on open files is reached (ulimit -n)",
            _ => "",
        };
        Self::for_good(format!("could not be made: {call}: {error}{hint}"))
    }

    /// The copy has ended like this, with that message if it left one.
    pub fn of_status(status: ExitStatus, message: &str, limits: Limits) -> Self {
        if let Some(signal) = status.signal() {
            return Self::by_chance(match signal {
                libc::SIGKILL => format!("was killed (signal {signal}), perhaps for lack of memory"),
                libc::SIGALRM | libc::SIGXCPU => format!("ran out of time (signal {signal})"),
                _ => format!("crashed (signal {signal})"),
            });
        }
        match status.code().and_then(Ending::from_status) {
            Some(Ending::Answered) => Self::by_chance("answered only in part"),
            Some(Ending::Failed) => Self::for_good(format!("failed: {message}")),
            Some(Ending::Panicked) => Self::by_chance(format!("panicked{message}; please report this bug")),
            Some(Ending::PastLimit) => Self::for_good(format!(
                "needed more than {} MB: use in_process: true, which has no such limit",
                limits.memory >> 20,
            )),
            Some(Ending::NoMemory) => Self::by_chance("got no more memory from the system"),
            Some(Ending::NotIsolated) => {
                Self::for_good("could not close the program's files: neither close_range nor /proc is there")
            }
            Some(Ending::Orphaned) | None => Self::by_chance(format!("ended early ({status})")),
        }
    }
}
