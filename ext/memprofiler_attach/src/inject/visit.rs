//! One stop of the main thread: it is sent to our code, let go at once, and comes back by itself. As the delivery of a
//! signal, which the process survives wherever it is, but for the kernel's part in it.

use super::arch::{Code, Destination, Table};
use super::area::{self, Call};
use super::living::LivingVm;
use super::place::Place;
use super::target::Target;
use super::thread::{HeldThread, Missed};
use crate::failure::Failure;
use crate::interrupt;
use crate::process::{self, Status};
use ruby_layout::memory::Memory;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long to wait for a thread to stop, and then to make its calls.
const STOP_LIMIT: Duration = Duration::from_secs(3);
const RUN_LIMIT: Duration = Duration::from_secs(20);
/// How long to try again where a thread must not be disturbed.
const DISTURB_LIMIT: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_micros(300);
const POLL: Duration = Duration::from_micros(50);
/// How much of its stack must be left, in bytes, and the distances at which that is checked.
const STACK: usize = 48 << 10;
const PAGE: usize = 4096;

/// What came of it.
#[derive(Debug)]
pub struct Visit {
    /// How long the thread stood still.
    pub pause: Duration,
    /// The results of the calls.
    pub results: Vec<usize>,
}

/// What a visit is for.
pub struct Errand<'a> {
    /// Whom to visit.
    pub target: &'a Target,
    /// Its processor.
    pub table: Table,
    /// Where its code and area are.
    pub place: &'a Place,
    /// What it must not have lost meanwhile.
    pub living: &'a LivingVm,
}

impl Errand<'_> {
    /// Visits. `prepare` writes to the process while it stands still; `calls` are to be made, by whether it was in a
    /// system call, which fails with EINTR if `interrupt`.
    pub fn visit(
        &self,
        prepare: impl Fn() -> io::Result<()>,
        calls: impl Fn(bool) -> Vec<Call>,
        interrupt: bool,
    ) -> Result<Visit, Failure> {
        let pid = self.target.pid;
        let failed = |error: io::Error| explain(pid, &error);
        let deadline = Instant::now() + DISTURB_LIMIT;
        loop {
            let thread = HeldThread::hold(pid, self.table, STOP_LIMIT).map_err(|missed| reason(pid, missed))?;
            let registers = thread.registers().map_err(failed)?;
            let living = self.living.is_there();
            if !living || self.must_not_be_disturbed(&thread, &registers).map_err(failed)? {
                drop(thread);
                interrupt::check()?;
                if Instant::now() > deadline {
                    let reason =
                        if living { "was always where it must not be disturbed: try again" } else { "is ending" };
                    return Err(Failure::new(format!("process {pid} {reason}")));
                }
                sleep(RETRY);
                continue;
            }
            let vectors = thread.vectors().map_err(failed)?;
            let place = self.place;
            let to = Destination { enter: place.entry(|code: &Code| code.enter), area: place.area, interrupt };
            let detour = (self.table.detour)(&registers, &vectors, &to);
            let calls = calls((self.table.in_system_call)(&registers));
            prepare().map_err(failed)?;
            for (address, bytes) in [
                detour.frame,
                (place.area + area::IMAGE, detour.image.0.to_ne_bytes().to_vec()),
                detour.image,
                (place.area + area::DONE, 0_usize.to_ne_bytes().to_vec()),
                (place.area + area::LIST, Call::list(&calls, place.area)),
            ] {
                self.target.write(address, &bytes).map_err(failed)?;
            }
            thread.set_registers(detour.registers).map_err(failed)?;
            // It writes that itself, too, but perhaps runs a handler of signals first.
            self.target.set(place.area + area::BUSY, 1).map_err(failed)?;
            let pause = thread.release();
            self.wait()?;
            return Ok(Visit { pause, results: self.results(calls.len()).map_err(failed)? });
        }
    }

    /// Whether it is in our code already, in a sequence that must not be left, or near the end of its stack.
    fn must_not_be_disturbed(&self, thread: &HeldThread, registers: &super::arch::Registers) -> io::Result<bool> {
        let stack = (self.table.stack_pointer)(registers);
        let room = (1..=STACK / PAGE).all(|page| self.target.word((stack & !7) - page * PAGE).is_ok());
        Ok(!room
            || self.place.contains((self.table.program_counter)(registers))
            || self.is_busy()?
            || thread.in_restartable_sequence(self.target))
    }

    fn is_busy(&self) -> io::Result<bool> {
        let here = self.target.word(self.place.area + area::OWNER)? == self.target.own_pid as usize;
        Ok(here && self.target.word(self.place.area + area::BUSY)? != 0)
    }

    fn wait(&self) -> Result<(), Failure> {
        let deadline = Instant::now() + RUN_LIMIT;
        while self.target.word(self.place.area + area::DONE).map_err(|error| explain(self.target.pid, &error))? == 0 {
            if Instant::now() > deadline {
                let pid = self.target.pid;
                let stopped = Status::of(pid).is_ok_and(|status| status.state() == process::State::Stopped);
                return Err(Failure::new(if stopped {
                    format!("process {pid} is stopped: kill -CONT {pid}")
                } else {
                    format!("process {pid} does not get to run: it waits for a processor, or its cgroup is frozen")
                }));
            }
            interrupt::check()?;
            sleep(POLL);
        }
        Ok(())
    }

    fn results(&self, count: usize) -> io::Result<Vec<usize>> {
        let result = |number| self.place.area + area::LIST + area::CALL_SIZE * number + 48;
        (0..count).map(|number| self.target.word(result(number))).collect()
    }
}

/// The failure of something that was tried on process `pid`.
pub fn explain(pid: i32, error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(libc::ESRCH) => ended(pid),
        // It could be read before.
        Some(libc::EPERM | libc::EACCES) => match Status::of(pid).ok().and_then(|status| status.tracer()) {
            Some(tracer) => Failure::new(format!("process {pid} is being traced by process {tracer}: end that first")),
            None => process::explain(pid, error),
        },
        _ if Status::of(pid).is_ok_and(|status| status.state() != process::State::Ended) => {
            Failure::new(format!("process {pid}: {error}"))
        }
        _ => ended(pid),
    }
}

fn ended(pid: i32) -> Failure {
    Failure::new(format!("process {pid} has ended"))
}

fn reason(pid: i32, missed: Missed) -> Failure {
    match missed {
        Missed::Error(error) => explain(pid, &error),
        Missed::Ended => ended(pid),
        Missed::Stopped => Failure::new(format!("process {pid} is stopped: kill -CONT {pid} first")),
        Missed::Late => {
            let state = Status::of(pid).map(|status| status.field("State").to_owned()).unwrap_or_default();
            Failure::new(format!(
                "process {pid} did not stop within {} s: it is in the kernel, in state {state}",
                STOP_LIMIT.as_secs()
            ))
        }
    }
}
