//! What happens in a copy.

use super::isolation::{self, PIPE};
use super::pipe::Answer;
use crate::allocator::{self, Shortage};
use crate::faults;
use std::io::{self, BufWriter, Write};
use std::os::fd::RawFd;
use std::time::Duration;

/// How a copy ends: its exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Ending {
    /// It has answered.
    Answered,
    /// The work has failed; a message says why.
    Failed,
    /// A panic; a message says where.
    Panicked,
    /// It needed more memory than its limit.
    PastLimit,
    /// The system had no more memory for it.
    NoMemory,
    /// It could not close the program's files.
    NotIsolated,
    /// Its parent has died.
    Orphaned,
}

impl Ending {
    /// The ending with this exit status.
    pub fn from_status(status: i32) -> Option<Self> {
        [
            Self::Answered,
            Self::Failed,
            Self::Panicked,
            Self::PastLimit,
            Self::NoMemory,
            Self::NotIsolated,
            Self::Orphaned,
        ]
        .into_iter()
        .find(|ending| *ending as i32 == status)
    }
}

/// Ends the process, and runs nothing that was registered for its end.
pub fn end(ending: Ending) -> ! {
    // SAFETY: it does not return.
    unsafe { libc::_exit(ending as i32) }
}

/// What a copy has to know.
#[derive(Debug)]
pub struct Orders {
    /// The process of which it is a copy.
    pub parent: libc::pid_t,
    /// Where to write the answer.
    pub pipe: RawFd,
    /// How much time it has.
    pub wall: Duration,
    /// How many bytes it may take.
    pub memory: u64,
}

/// Does `work` in a copy of the process, and ends it.
///
/// # Safety
/// This process must be a copy that was made a moment ago, with all signals blocked.
pub unsafe fn obey(orders: &Orders, work: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> ! {
    // SAFETY: a copy has a single thread, in which all signals are blocked.
    unsafe {
        allocator::begin_copy(orders.memory, |shortage| {
            end(match shortage {
                Shortage::Limit => Ending::PastLimit,
                Shortage::System => Ending::NoMemory,
            })
        });
        isolation::isolate(orders.parent, orders.pipe, orders.wall);
    }
    // A panic ends the copy here: to unwind its stack might take locks of the loader.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
        fail(Ending::Panicked, &place.unwrap_or_default());
    }));
    faults::point("child: start");
    let mut answer = BufWriter::with_capacity(1 << 16, pipe());
    match work(&mut answer).and_then(|()| answer.into_inner().map_err(io::IntoInnerError::into_error)) {
        Ok(answer) => {
            faults::point("child: seal");
            // If the parent does not get it, it notices.
            let _ = answer.seal(allocator::peak());
            end(Ending::Answered)
        }
        Err(error) => fail(Ending::Failed, &error.to_string()),
    }
}

/// Writes a message in place of the answer.
fn fail(ending: Ending, message: &str) -> ! {
    let mut pipe = pipe();
    // If this fails, the message is unknown, but not the failure.
    let _ = pipe.write_all(message.as_bytes()).and_then(|()| pipe.seal(allocator::peak()));
    end(ending)
}

fn pipe() -> Answer {
    // SAFETY: the one descriptor that a copy has left.
    unsafe { Answer::new(PIPE) }
}
