//! `stack`: what the threads of a Ruby do.

mod activity;
mod named;
mod pause;
mod recording;
mod report;
mod sample;
pub mod watch;

use crate::failure::Failure;
use crate::process::{self, Mapping, State, Status, Tasks};
use crate::ruby::Ruby;
use crate::vm::Vm;
use activity::Linux;
use named::Names;
use pause::Paused;
use report::{Report, ThreadReport};
use ruby_layout::memory::{CoreFile, Memory, ProcessMemory};
use ruby_layout::thread::Thread;
use sample::sample;
use std::io;
use std::path::Path;

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
    let tasks = Tasks::of(pid);
    let linux = |thread: &Thread| activity::of_linux(pid, thread.tid, &tasks, paused.as_ref());
    let threads = reports(&vm, linux).map_err(|error| process::explain(pid, &error))?;
    drop(paused);
    Report { pid: Some(pid), ruby: vm.version, threads }.print(options.json)
}

/// Prints the stacks that all threads of a process had when it left the core file `path`.
pub fn run_core(path: &str, options: Options) -> Result<(), Failure> {
    let fail = |reason: String| Failure::new(format!("{path}: {reason}"));
    let core = CoreFile::open(Path::new(path)).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => fail("no core file of a 64-bit process".to_owned()),
        _ => fail(error.to_string()),
    })?;
    let mappings: Vec<Mapping> = core.mapped.iter().map(Mapping::of_core).collect();
    let ruby = Ruby::find(&core, &mappings);
    let ruby = ruby.ok_or_else(|| fail("no core file of a Ruby, or its libraries are gone or others".to_owned()))?;
    let vm = Vm::find(core, ruby).map_err(|error| fail(error.to_string()))?;
    let threads = reports(&vm, |_| Linux::Unknown).map_err(|error| fail(error.to_string()))?;
    Report { pid: None, ruby: vm.version, threads }.print(options.json)
}

fn reports<M: Memory<Error = io::Error>>(
    vm: &Vm<M>,
    linux: impl Fn(&Thread) -> Linux,
) -> io::Result<Vec<ThreadReport>> {
    let mut names = Names::default();
    let threads = sample(vm)?.into_iter().map(|(thread, stack)| {
        let activity = activity::of(&thread, linux(&thread));
        let named = stack.and_then(|stack| Ok((names.frames(&vm.reader, &stack.calls)?, stack.is_complete)));
        ThreadReport::new(thread, activity, named)
    });
    Ok(threads.collect())
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
