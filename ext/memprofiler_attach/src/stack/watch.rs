//! `watch`: where the time goes, by stacks read many times.

use super::activity::{self, of_linux};
use super::named::Names;
use super::pause::Paused;
use super::recording::Recording;
use super::sample::{is_torn, threads};
use super::{Options, open};
use crate::failure::Failure;
use crate::interrupt;
use crate::process::{self, Tasks};
use crate::text::print;
use crate::vm::Vm;
use memprofiler_core::windows::mix;
use ruby_layout::memory::ProcessMemory;
use ruby_layout::stack::StackCopy;
use ruby_layout::thread::Thread;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How many stacks to remember.
const MOST_KNOWN: usize = 10_000;

/// What reading the stacks of a process takes.
struct Watcher {
    pid: i32,
    tasks: Tasks,
    vm: Vm<ProcessMemory>,
    names: Names,
    recording: Recording,
    /// The stacks of contexts that did not change when they were read last.
    known: HashMap<usize, (StackCopy, u32)>,
    incomplete: u64,
    unreadable: u64,
}

/// Writes a profile of wall time to stdout: the stacks of all threads of process `pid`, read `rate` times a second for
/// `seconds`, or until a signal or the process's end, of which stderr is told.
pub fn run(pid: i32, seconds: &str, rate: &str, options: Options) -> Result<(), Failure> {
    let number = |text: &str| text.parse().ok().filter(|number: &f64| (1e-3..=1e6).contains(number));
    let (Some(seconds), Some(rate)) = (number(seconds), number(rate)) else {
        return Err(Failure::new(format!("seconds and rate must be 0.001 to 1000000, not {seconds} and {rate}")));
    };
    let vm = open(pid)?;
    interrupt::catch();
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let version = vm.version.clone();
    let mut watcher = Watcher {
        pid,
        tasks: Tasks::of(pid),
        vm,
        names: Names::default(),
        recording: Recording::new(since_1970),
        known: HashMap::new(),
        incomplete: 0,
        unreadable: 0,
    };
    let (start, mut readings, mut random) = (Instant::now(), 0, Random(since_1970.as_nanos() as u64));
    let end = Duration::from_secs_f64(seconds);
    let mut next = Duration::ZERO;
    while !interrupt::happened() {
        // At random, so as not to be in step with the program.
        next += Duration::from_secs_f64(2.0 * random.fraction() / rate);
        if next >= end {
            interrupt::sleep(end.saturating_sub(start.elapsed()));
            break;
        }
        interrupt::sleep(next.saturating_sub(start.elapsed()));
        if interrupt::happened() {
            break;
        }
        // What took too long is not made up for.
        next = next.max(start.elapsed());
        match watcher.read(options.pause) {
            Ok(true) => readings += 1,
            Ok(false) => watcher.unreadable += 1,
            // What was read so far is written.
            Err(failure) if readings > 0 => {
                failure.print();
                break;
            }
            Err(failure) => return Err(failure),
        }
    }
    let comments = [
        format!("pid={pid}"),
        format!("ruby_version={version}"),
        format!("readings={readings}"),
        format!("incomplete_stacks={}", watcher.incomplete),
        format!("unreadable_stacks={}", watcher.unreadable),
    ];
    let bytes = watcher.recording.finish(start.elapsed(), readings, comments.map(Arc::from).into());
    print(&bytes.map_err(|error| Failure::new(format!("profile: {error}")))?)
}

impl Watcher {
    /// Reads all stacks once; whether the list of threads made sense. Fails if the process has ended, or cannot be
    /// stopped or read.
    fn read(&mut self, pause: bool) -> Result<bool, Failure> {
        self.names.refresh();
        let paused = if pause { Some(Paused::new(self.pid)?) } else { None };
        match self.read_threads(paused.as_ref()) {
            Ok(()) => Ok(true),
            Err(error) if is_torn(&error) => Ok(false),
            Err(error) => Err(process::explain(self.pid, &error)),
        }
    }

    fn read_threads(&mut self, paused: Option<&Paused>) -> io::Result<()> {
        for thread in threads(&self.vm)? {
            match self.stack(thread.context) {
                Ok(stack) => self.add(stack, &thread, paused),
                Err(error) if is_torn(&error) => self.unreadable += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn add(&mut self, stack: u32, thread: &Thread, paused: Option<&Paused>) {
        let activity = activity::of(thread, of_linux(self.pid, thread.tid, &self.tasks, paused));
        let name = match &thread.name {
            Some(name) => name.clone(),
            None if thread.is_main => "main".to_owned(),
            None => thread.tid.to_string(),
        };
        self.recording.add(stack, &[("activity", activity), ("thread", &name)]);
    }

    /// The number of the stack of an execution context.
    fn stack(&mut self, context: usize) -> io::Result<u32> {
        let reader = &self.vm.reader;
        let before = reader.copy(context).ok();
        if let (Some((copy, stack)), Some(before)) = (self.known.get(&context), &before) {
            if copy == before {
                return Ok(*stack);
            }
        }
        let stack = reader.stack(context)?;
        self.incomplete += u64::from(!stack.is_complete);
        let number = self.recording.stack(&self.names.frames(reader, &stack.calls)?);
        // Threads and fibers come and go.
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        // If it did not change in between, these are its calls.
        match (before, reader.copy(context)) {
            (Some(before), Ok(after)) if before == after => _ = self.known.insert(context, (after, number)),
            _ => _ = self.known.remove(&context),
        }
        Ok(number)
    }
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    /// 0.0 to 1.0.
    fn fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(1);
        (mix(self.0) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
