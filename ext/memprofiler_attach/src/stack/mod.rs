//! `stack`: what the threads of a Ruby do.

mod activity;
mod named;
mod pause;
mod recording;
mod report;
mod sample;
pub mod watch;

use crate::failure::Failure;
use crate::process::{self, State, Status};
use crate::ruby::Ruby;
use crate::vm::Vm;
use named::Names;
use pause::Paused;
use report::{Report, ThreadReport};
use ruby_layout::memory::ProcessMemory;
use sample::sample;

/// How to read, and to print.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Whether the process is stopped meanwhile.
    pub pause: bool,
    /// Whether to print JSON.
    pub json: bool,
}

impl Options {
    /// From words of the command line.
    pub fn parse(words: &[&str]) -> Result<Self, Failure> {
        let mut options = Self::default();
        for &word in words {
            match word {
                "pause" => options.pause = true,
                "json" => options.json = true,
                _ => return Err(Failure::new(format!("{word} is no option: pause or json"))),
            }
        }
        Ok(options)
    }
}

/// Prints the stacks of all threads of process `pid`.
pub fn run(pid: i32, options: Options) -> Result<(), Failure> {
    let vm = open(pid)?;
    let paused = if options.pause { Some(Paused::new(pid)?) } else { None };
    let mut names = Names::default();
    let mut threads = Vec::new();
    for (thread, stack) in sample(&vm).map_err(|error| process::explain(pid, &error))? {
        let activity = activity::of(&thread, activity::of_linux(pid, thread.tid, paused.as_ref()));
        let named = stack.and_then(|stack| Ok((names.frames(&vm.reader, &stack.calls)?, stack.is_complete)));
        threads.push(ThreadReport::new(thread, activity, named));
    }
    drop(paused);
    let report = Report { pid: Some(pid), ruby: vm.version, threads };
    report.print(options.json)
}

/// The VM in process `pid`.
pub fn open(pid: i32) -> Result<Vm<ProcessMemory>, Failure> {
    let status = Status::of(pid)?;
    if status.state() == State::Ended {
        return Err(Failure::new(format!("process {pid} has ended, and waits for its parent to notice")));
    }
    if let Some(process) = status.process().filter(|&process| process != pid) {
        return Err(Failure::new(format!("{pid} is a thread: give the process, {process}")));
    }
    let ruby = Ruby::in_process(pid)?;
    let ruby = ruby.ok_or_else(|| Failure::new(format!("process {pid} is no Ruby, see `memprofiler ps`")))?;
    Vm::find(ProcessMemory::new(pid), ruby).map_err(|error| Failure::new(format!("process {pid}: {error}")))
}
