//! `require`: has a running Ruby require a file, in a thread of its own, at a point where the VM itself would run a
//! handler of signals.
//!
//! The main thread is stopped once, or a few times if it is idle, for some microseconds, to call a function that is
//! made for handlers of signals: the one that asks for a postponed job. The job creates the thread, and that calls
//! `require`.

mod arch;
mod area;
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
use crate::process::{State, Status};
use arch::Code;
use area::Call;
use place::Place;
use preflight::Candidate;
use ruby_layout::memory::Memory;
use std::cell::Cell;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::thread::sleep;
use std::time::{Duration, Instant};
use target::Target;
use visit::{Errand, explain};
use vm::{Jobs, Vm};

/// How long a busy process may take to run the job before it is woken, and between further wakings at most.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_micros(500);
/// How long the job may take to create the thread.
const THREAD_LIMIT: Duration = Duration::from_secs(5);
/// How long the file may take at least.
const LOAD_LIMIT: Duration = Duration::from_secs(30);

/// Prints what is known of process `pid`, or fails if nothing can be brought into it.
pub fn check(pid: i32) -> Result<(), Failure> {
    println!("{}", Candidate::find(pid)?.ruby.version);
    Ok(())
}

/// Has process `pid` require the file `path`, as it sees it, within `timeout`, and waits until that has ended. However
/// this ends: if the failure is not pending, the process does not look for the file any more.
pub fn require(pid: i32, path: &str, timeout: Duration) -> Result<(), Failure> {
    if path.len() >= area::PATH_SIZE {
        return Err(Failure::new(format!("{path} is longer than {} bytes", area::PATH_SIZE - 1)));
    }
    interrupt::catch();
    let _lock = lock(pid)?;
    hurry();
    let candidate = Candidate::find(pid)?;
    let target = Target::open(pid)?;
    let place = Place::find(&target, &candidate.images, &candidate.mappings, &candidate.table)
        .ok_or_else(|| Failure::new(format!("process {pid} has no room for the code")))?;
    let errand = Errand { target: &target, table: candidate.table, place: &place, living: &candidate.living };
    let mut job = Job { errand: &errand, vm: &candidate.vm, asked: Cell::new(false), pauses: Vec::new() };
    job.wait_for_an_earlier_one()?;
    let asked = Instant::now();
    job.ask(path).and_then(|()| job.reach(asked + timeout)).or_else(|failure| job.take_back(failure))?;
    let reached = asked.elapsed();
    job.load(timeout.max(LOAD_LIMIT)).map_err(|failure| job.unless_ended(failure))?;
    job.print(reached, asked.elapsed());
    Ok(())
}

/// Only one tool at a time. The name is gone with the tool.
fn lock(pid: i32) -> Result<UnixListener, Failure> {
    SocketAddr::from_abstract_name(format!("memprofiler-attach-{pid}"))
        .and_then(|name| UnixListener::bind_addr(&name))
        .map_err(|_| Failure::new(format!("somebody else attaches to process {pid} at the moment: try again later")))
}

/// Lets this tool run before everything else, if it may: on a busy machine it would otherwise have to wait for a
/// processor while it holds the thread, for milliseconds.
fn hurry() {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel only reads the parameter. If this is not allowed, nothing changes.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) };
}

struct Job<'a> {
    errand: &'a Errand<'a>,
    vm: &'a Vm,
    /// Whether the process has been asked.
    asked: Cell<bool>,
    pauses: Vec<Duration>,
}

impl Job<'_> {
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
            if interrupt::happened() {
                return Err(Failure::new("interrupted"));
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            sleep(POLL);
        }
    }

    /// The thread of an earlier tool reads the area when it begins, and writes to it when it ends. If it does not end,
    /// the program has killed it before it began.
    fn wait_for_an_earlier_one(&self) -> Result<(), Failure> {
        let own = self.word(area::OWNER)? == self.errand.target.own_pid as usize;
        if own && self.word(area::THREAD)? != 0 {
            self.until(area::ENDED, Instant::now() + LOAD_LIMIT)?;
        }
        Ok(())
    }

    /// Asks for the job.
    fn ask(&mut self, path: &str) -> Result<(), Failure> {
        let Errand { target, place, .. } = self.errand;
        let prepare = || {
            place.write_code(target)?;
            place.mark_area(target)?;
            let words = [
                (area::BUSY, 0),
                (area::RAN, 0),
                (area::THREAD, 0),
                (area::ENDED, 0),
                (area::STATE, 0),
                (area::REQUIRE, self.vm.require),
                (area::THREAD_CREATE, self.vm.thread_create),
                (area::PROTECT, self.vm.protect),
                (area::OWNER, target.own_pid as usize),
            ];
            words.iter().try_for_each(|&(distance, word)| target.set(place.area + distance, word))?;
            target.write(place.area + area::PATH, format!("{path}\0").as_bytes())?;
            self.asked.set(true);
            target.set(place.area + area::WANTED, 1)
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
    fn reach(&mut self, deadline: Instant) -> Result<(), Failure> {
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
    fn take_back(&self, failure: Failure) -> Result<(), Failure> {
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
    fn unless_ended(&self, failure: Failure) -> Failure {
        match Status::of(self.errand.target.pid) {
            Ok(status) if status.state() != State::Ended => failure.pending(),
            _ => failure,
        }
    }

    /// Waits until the thread has ended.
    fn load(&self, limit: Duration) -> Result<(), Failure> {
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

    /// Prints as JSON what came of it; milliseconds and microseconds.
    fn print(&self, reached: Duration, loaded: Duration) {
        let pauses: Vec<String> = self.pauses.iter().map(|pause| pause.as_micros().to_string()).collect();
        println!(
            r#"{{"pauses_us":[{}],"reached_ms":{},"loaded_ms":{},"state":{}}}"#,
            pauses.join(","),
            reached.as_millis(),
            loaded.as_millis(),
            self.word(area::STATE).unwrap_or(0)
        );
    }
}
