//! Makes copies, and waits for their answers.

use super::inside::{self, Orders};
use super::loss::Loss;
use super::pipe::{self, Sealed};
use super::process::Process;
use super::reading::{Event, Reading};
use super::under_way::UnderWay;
use super::{Failure, Limits, Outcome, refusal};
use crate::faults;
use crate::vm::gvl;
use magnus::{Error, Ruby};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Work without a time limit would never be given up.
const LONGEST: Duration = Duration::from_secs(86_400);

/// See [`super::run`].
pub fn up_to_two(
    ruby: &Ruby,
    mut limits: Limits,
    prepare: impl Fn(u32),
    mut work: impl FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<Outcome, Failure> {
    let _under_way = UnderWay::begin().ok_or_else(|| {
        Failure::Refused("the heap of this process is being read already: try again when that has ended".to_owned())
    })?;
    limits.wall = limits.wall.min(LONGEST);
    let (mut pause, mut attempts) = (Duration::ZERO, 0);
    let deadline = Instant::now() + limits.wall;
    loop {
        let limits = refusal::check(ruby, limits)?;
        attempts += 1;
        match attempt(limits, deadline, &mut pause, &|| prepare(attempts), &mut work)? {
            Ok(Sealed { bytes, peak, .. }) => return Ok(Outcome { bytes, pause, attempts, memory: peak }),
            Err(loss) if attempts == 2 || !loss.try_again || Instant::now() >= deadline => {
                let again = if attempts == 2 { " (at the second attempt)" } else { "" };
                return Err(Failure::Lost(format!("the copy of this process {}{again}", loss.reason)));
            }
            Err(_) => faults::point("child: retry"),
        }
    }
}

/// Makes one copy, and adds the time that this took to `pause`. Fails if an exception is raised in this thread while it
/// waits; the copy is then killed, as at any other loss.
fn attempt(
    limits: Limits,
    deadline: Instant,
    pause: &mut Duration,
    prepare: &dyn Fn(),
    work: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<Result<Sealed, Loss>, Error> {
    let (pipe, answer) = match pipe::new() {
        Ok(ends) => ends,
        Err(error) => return Ok(Err(Loss::before("pipe", &error))),
    };
    let wall = deadline.saturating_duration_since(Instant::now());
    let orders = |parent| Orders { parent, pipe: answer.as_raw_fd(), wall, memory: limits.memory };
    prepare();
    faults::point("child: copy");
    // SAFETY: it runs in the copy, first of all.
    let copied = Process::copy(|parent| unsafe { inside::obey(&orders(parent), work) });
    drop::<OwnedFd>(answer);
    let mut process = match copied {
        Ok((process, took)) => {
            *pause += took;
            process
        }
        Err(error) => return Ok(Err(Loss::before("clone", &error))),
    };
    let mut reading = Reading::new(pipe.descriptor(), deadline);
    loop {
        match gvl::waiting(|| reading.go_on(&mut process)) {
            Some(Event::Ended(status)) => return Ok(judge(status, reading.bytes, limits)),
            Some(Event::Late) => return Ok(Err(Loss::late(limits.wall))),
            Some(Event::Hung) => return Ok(Err(Loss::by_chance("hung"))),
            Some(Event::Interrupted) | None => gvl::check_interrupts()?,
        }
        if process.is_foreign() {
            return Ok(Err(Loss::by_chance("was lost to a fork in a signal handler")));
        }
    }
}

/// What a copy that has ended like this has answered.
fn judge(status: ExitStatus, bytes: Vec<u8>, limits: Limits) -> Result<Sealed, Loss> {
    match pipe::unseal(bytes) {
        Some(sealed) if status.success() && sealed.whole => Ok(sealed),
        message => {
            let message = message.map(|message| message.bytes).unwrap_or_default();
            Err(Loss::of_status(status, &String::from_utf8_lossy(&message), limits))
        }
    }
}
