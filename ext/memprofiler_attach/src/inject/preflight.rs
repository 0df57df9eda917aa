//! What can be known before anything is touched.

use super::arch::{self, Table};
use super::living::LivingVm;
use super::vm::Vm;
use crate::elf::Image;
use crate::failure::Failure;
use crate::interrupt;
use crate::process::{self, Mapping, State, Status};
use crate::ruby::Ruby;
use ruby_layout::memory::{Memory, ProcessMemory};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a starting Ruby may take.
const BOOT_LIMIT: Duration = Duration::from_secs(10);
/// How long a VM may not be found, as a collection moves its objects just then.
const VM_LIMIT: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(5);

/// A process into which code can be brought.
#[derive(Debug)]
pub struct Candidate {
    /// Its Ruby.
    pub ruby: Ruby,
    /// What is needed of that.
    pub vm: Vm,
    /// Its VM.
    pub living: LivingVm,
    /// Its programs and libraries, Ruby's first.
    pub images: Vec<Image>,
    /// What is mapped.
    pub mappings: Vec<Mapping>,
    /// Its processor.
    pub table: Table,
}

impl Candidate {
    /// Process `pid`, or why that is none.
    pub fn find(pid: i32) -> Result<Self, Failure> {
        let Some(table) = arch::TABLE else {
            return Err(Failure::new("attach works on x86_64 only so far"));
        };
        check_status(pid, &Status::of(pid)?)?;
        let deadline = Instant::now() + BOOT_LIMIT;
        loop {
            match Self::look(pid, table) {
                Ok(Some(found)) => return Ok(found),
                Ok(None) if Instant::now() < deadline => sleep(RETRY),
                Ok(None) => return Err(Failure::new(format!("Ruby in process {pid} is still starting: try again"))),
                Err(failure) => return Err(failure),
            }
            interrupt::check()?;
        }
    }

    /// None if Ruby is still starting.
    fn look(pid: i32, table: Table) -> Result<Option<Self>, Failure> {
        let Some(ruby) = Ruby::in_process(pid)? else {
            return Err(Failure::new(format!("process {pid} runs no CRuby: `memprofiler ps` lists those that do")));
        };
        let mappings = process::mappings(pid).map_err(|error| process::explain(pid, &error))?;
        let memory = ProcessMemory::new(pid);
        if ruby.image.machine != table.machine {
            return Err(Failure::new(format!("process {pid} is of another architecture than this tool")));
        }
        let mut images: Vec<Image> = mappings.iter().filter_map(|mapping| Image::at(&memory, mapping)).collect();
        if images.iter().filter(|image| image.symbol(&memory, "ruby_init_stack").is_some()).count() > 1 {
            return Err(Failure::new(format!("process {pid} has several Rubies, and only one can be profiled")));
        }
        images.sort_by_key(|image| image.path != ruby.image.path);
        let vm = Vm::find(&memory, &ruby.image, &ruby.version)?;
        if !memory.word(vm.booted).is_ok_and(|word| word != 0) {
            return Ok(None);
        }
        if !has_glibc(&memory, &images) {
            return Err(Failure::new(format!(
                "process {pid} has another C library than glibc: musl lets malloc use the memory in which the code and \
                 its data would be"
            )));
        }
        let living = Self::living(pid, &ruby)?;
        Ok(Some(Self { ruby, vm, living, images, mappings, table }))
    }

    fn living(pid: i32, ruby: &Ruby) -> Result<LivingVm, Failure> {
        let deadline = Instant::now() + VM_LIMIT;
        loop {
            if let Some(living) = LivingVm::find(pid, ruby) {
                return Ok(living);
            }
            interrupt::check()?;
            if Instant::now() >= deadline {
                return Err(Failure::new(format!(
                    "process {pid} is ending, or its Ruby was built in an unusual way: no VM was found in it"
                )));
            }
            sleep(RETRY);
        }
    }
}

/// musl's loader gives the rests of pages behind the data of libraries to malloc (`reclaim_gaps` in its
/// ldso/dynlink.c): these are in use, though they may be zero. gcompat has glibc's functions beside it.
fn has_glibc<M: Memory>(memory: &M, images: &[Image]) -> bool {
    images.iter().any(|image| image.symbol(memory, "gnu_get_libc_version").is_some())
        && !images.iter().any(|image| image.path.contains("/ld-musl-"))
}

fn check_status(pid: i32, status: &Status) -> Result<(), Failure> {
    let refuse = |reason: String| Err(Failure::new(format!("process {pid} {reason}")));
    match status.state() {
        State::Ended => return refuse("has ended".to_owned()),
        State::Stopped => return refuse(format!("is stopped: kill -CONT {pid} first")),
        State::Traced | State::Alive => (),
    }
    if let Some(process) = status.process().filter(|&process| process != pid) {
        return Err(Failure::new(format!("{pid} is a thread of process {process}: give that one's id")));
    }
    if let Some(tracer) = status.tracer() {
        let name = Status::of(tracer).map(|status| status.field("Name").to_owned()).unwrap_or_default();
        return refuse(format!("is being traced by process {tracer} ({name}): end that first"));
    }
    if status.field("Seccomp") == "1" {
        return refuse("may make no system calls (seccomp's strict mode)".to_owned());
    }
    if status.field("x86_Thread_features").contains("shstk") {
        return refuse("has a shadow stack, with which it cannot be sent anywhere".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> String {
        check_status(7, &Status::parse(text)).map_or_else(|failure| failure.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn says_what_is_wrong() {
        assert_eq!(check("State:\tS (sleeping)\nTgid:\t7\nTracerPid:\t0\nSeccomp:\t2\n"), "fine");
        assert_eq!(check("State:\tZ (zombie)\n"), "process 7 has ended");
        assert_eq!(check("State:\tT (stopped)\n"), "process 7 is stopped: kill -CONT 7 first");
        assert_eq!(check("State:\tS\nTgid:\t5\n"), "7 is a thread of process 5: give that one's id");
        assert!(check("State:\tt\nTgid:\t7\nTracerPid:\t2147483647\n").contains("traced by process 2147483647"));
        assert!(check("State:\tS\nSeccomp:\t1\n").contains("seccomp"));
        assert!(check("State:\tS\nx86_Thread_features:\tshstk wrss\n").contains("shadow stack"));
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn knows_glibc() {
        let pid = std::process::id() as i32;
        let memory = ProcessMemory::new(pid);
        let mappings = process::mappings(pid).unwrap();
        let mut images: Vec<Image> = mappings.iter().filter_map(|mapping| Image::at(&memory, mapping)).collect();
        assert!(has_glibc(&memory, &images));
        let path = std::mem::replace(&mut images[0].path, "/lib/ld-musl-x86_64.so.1".to_owned());
        assert!(!has_glibc(&memory, &images));
        images[0].path = path;
        images.retain(|image| !image.path.contains("/libc"));
        assert!(!images.is_empty() && !has_glibc(&memory, &images));
    }
}
