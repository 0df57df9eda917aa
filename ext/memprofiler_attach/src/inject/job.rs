//! The postponed job, from being asked for to the end of the thread that it creates.

use super::arch::Code;
use super::area::{self, Call};
use super::visit::{Errand, explain};
use super::vm::{Jobs, Vm};
use super::wake;
use crate::failure::Failure;
use crate::interrupt;
use crate::process::{State, Status};
use ruby_layout::memory::Memory;
use std::cell::Cell;
use std::io::{self, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a busy process may take to run the job before it is woken, and between further wakings at most.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_micros(500);
/// How long the job may take to create the thread.
const THREAD_LIMIT: Duration = Duration::from_secs(5);
/// The same for a job of a tool that was killed: it has hardly just run.
const EARLIER_THREAD_LIMIT: Duration = Duration::from_millis(100);

/// The job, in one process.
pub struct Job<'a> {
    errand: &'a Errand<'a>,
    vm: &'a Vm,
    /// Whether the process has been asked.
    asked: Cell<bool>,
    pauses: Vec<Duration>,
}

impl<'a> Job<'a> {
    /// One that is not asked for yet.
    pub fn new(errand: &'a Errand<'a>, vm: &'a Vm) -> Self {
        Self { errand, vm, asked: Cell::new(false), pauses: Vec::new() }
    }

    fn word(&self, distance: usize) -> Result<usize, Failure> {
        let Errand { target, place, .. } = self.errand;
        target.word(place.area + distance).map_err(|error| explain(target.pid, &error))
    }

    fn set(&self, distance: usize, word: usize) -> Result<(), Failure> {
        let Errand { target, place, .. } = self.errand;
        target.set(place.area + distance, word).map_err(|error| explain(target.pid, &error))
    }

    /// Waits until a word is not 0; whether it is.
    fn until(&self, distance: usize, deadline: Instant) -> Result<bool, Failure> {
        loop {
            if self.word(distance)? != 0 {
                return Ok(true);
            }
            interrupt::check()?;
            if Instant::now() >= deadline {
                return Ok(false);
            }
            sleep(POLL);
        }
    }

    /// Takes back the job of an earlier tool that was killed, and waits for the thread of one that has run: it reads the
    /// area when it begins, and writes to it when it ends.
    pub fn wait_for_an_earlier_one(&self, limit: Duration) -> Result<(), Failure> {
        let pid = self.errand.target.pid;
        if self.word(area::OWNER)? != self.errand.target.own_pid as usize {
            return Ok(());
        }
        self.set(area::WANTED, 0)?;
        if self.word(area::RAN)? == 0 || !self.until(area::THREAD, Instant::now() + EARLIER_THREAD_LIMIT)? {
            return Ok(());
        }
        // If it has not begun by then, the program has killed it before it could.
        if !self.until(area::ENDED, Instant::now() + limit)? && self.word(area::BEGUN)? != 0 {
            return Err(Failure::new(format!(
                "process {pid} still loads what was brought into it before: try again later"
            )));
        }
        Ok(())
    }

    /// Asks for the job.
    pub fn ask(&mut self, path: &str) -> Result<(), Failure> {
        let Errand { target, place, .. } = self.errand;
        let prepare = || {
            place.write_code(target)?;
            place.mark_area(target)?;
            let words = [
                (area::BUSY, 0),
                (area::THREAD, 0),
                (area::ENDED, 0),
                (area::BEGUN, 0),
                (area::REQUIRE, self.vm.require),
                (area::THREAD_CREATE, self.vm.thread_create),
                (area::PROTECT, self.vm.protect),
                (area::OWNER, target.own_pid as usize),
            ];
            words.iter().try_for_each(|&(distance, word)| target.set(place.area + distance, word))?;
            target.write(place.area + area::PATH, format!("{path}\0").as_bytes())?;
            self.asked.set(true);
            // At once, as an earlier tool's job, which was taken back, may run any time.
            target.write(place.area + area::WANTED, [1_usize, 0].map(usize::to_ne_bytes).as_flattened())
        };
        let calls = self.calls();
        let visit = self.errand.visit(prepare, |_| calls.clone(), false)?;
        self.pauses.push(visit.pause);
        let result = visit.results.first().map_or(0, |&result| result as u32);
        match self.vm.jobs {
            Jobs::Once { .. } if result == 0 => {
                Err(Failure::new("Ruby's buffer of postponed jobs is full: try again later"))
            }
            Jobs::Table { .. } if result == u32::MAX => Err(Failure::new("Ruby's table of postponed jobs is full")),
            _ => Ok(()),
        }
    }

    /// The calls that ask for it.
    fn calls(&self) -> Vec<Call> {
        let place = self.errand.place;
        let function = place.entry(|code: &Code| code.job);
        let arguments = [0, function, place.area, 0, 0];
        match self.vm.jobs {
            Jobs::Once { register } => vec![Call { function: register, arguments, result_to: None }],
            Jobs::Table { preregister, trigger } => vec![
                Call { function: preregister, arguments, result_to: Some(1) },
                Call { function: trigger, ..Call::default() },
            ],
        }
    }

    /// Waits until the job has run, and wakes the main thread if it is idle.
    pub fn reach(&mut self, deadline: Instant) -> Result<(), Failure> {
        let mut wait = FIRST_WAIT;
        while !self.until(area::RAN, deadline.min(Instant::now() + wait))? {
            if Instant::now() >= deadline {
                return Err(Failure::new(format!(
                    "process {} was busy in one C call, or waited in one, all the time: nothing was done; try again, or \
                     with a longer --timeout",
                    self.errand.target.pid
                )));
            }
            self.wake()?;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        Ok(())
    }

    fn wake(&mut self) -> Result<(), Failure> {
        let Errand { target, place, .. } = self.errand;
        let visit = self.errand.visit(|| Ok(()), |_| wake::questions(place), false)?;
        self.pauses.push(visit.pause);
        let handler = wake::call(target, place, self.vm);
        let asking = self.calls();
        let calls = |idle| if idle { asking.iter().copied().chain(handler).collect() } else { asking.clone() };
        let visit = self.errand.visit(|| Ok(()), calls, handler.is_none())?;
        self.pauses.push(visit.pause);
        Ok(())
    }

    /// Takes the job back, for want of which `failure` is; unless it has just run. It says that it runs before it looks
    /// whether it is wanted, so one of the two notices the other.
    pub fn take_back(&self, failure: Failure) -> Result<(), Failure> {
        if !self.asked.get() {
            return Err(failure);
        }
        match self.set(area::WANTED, 0).and_then(|()| self.word(area::RAN)) {
            Ok(0) => Err(failure),
            Ok(_) => Ok(()),
            Err(_) => Err(self.unless_ended(failure)),
        }
    }

    /// The failure of what the process still does, unless it has ended.
    pub fn unless_ended(&self, failure: Failure) -> Failure {
        match Status::of(self.errand.target.pid) {
            Ok(status) if status.state() != State::Ended => failure.pending(),
            _ => failure,
        }
    }

    /// Waits until the thread has ended.
    pub fn load(&self, limit: Duration) -> Result<(), Failure> {
        let pid = self.errand.target.pid;
        if !self.until(area::THREAD, Instant::now() + THREAD_LIMIT)? {
            return Err(Failure::new(format!(
                "process {pid} could not create a thread: it has as many as it may have, or its main thread's group is \
                 enclosed"
            )));
        }
        if !self.until(area::ENDED, Instant::now() + limit)? {
            return Err(Failure::new(format!("process {pid} is still loading after {} s", limit.as_secs())));
        }
        Ok(())
    }

    /// Prints as JSON what came of it, if anybody listens; milliseconds and microseconds.
    pub fn print(&self, reached: Duration, loaded: Duration) {
        let pauses: Vec<String> = self.pauses.iter().map(|pause| pause.as_micros().to_string()).collect();
        let _ = writeln!(
            io::stdout(),
            r#"{{"pauses_us":[{}],"reached_ms":{},"loaded_ms":{}}}"#,
            pauses.join(","),
            reached.as_millis(),
            loaded.as_millis(),
        );
    }
}
