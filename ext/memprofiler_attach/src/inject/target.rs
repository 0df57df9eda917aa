//! The memory of the process, written.

use crate::failure::Failure;
use crate::process::{self, Status};
use ruby_layout::memory::{Memory, ProcessMemory};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// A process whose memory can be read and written.
#[derive(Debug)]
pub struct Target {
    /// Its id, which is also that of its main thread.
    pub pid: i32,
    /// Its id, as it sees it.
    pub own_pid: i32,
    memory: ProcessMemory,
    file: File,
}

impl Target {
    /// That of process `pid`, as long as no other tool has it open.
    pub fn open(pid: i32) -> Result<Self, Failure> {
        let file = OpenOptions::new().write(true).open(format!("/proc/{pid}/mem"));
        let file = file.map_err(|error| process::explain(pid, &error))?;
        lock(&file, pid)?;
        let own_pid = Status::of(pid)?.own_id().unwrap_or(pid);
        Ok(Self { pid, own_pid, memory: ProcessMemory::new(pid), file })
    }

    /// Writes to memory, even where the process itself can only read.
    pub fn write(&self, address: usize, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, address as u64)
    }

    /// Writes a word.
    pub fn set(&self, address: usize, word: usize) -> io::Result<()> {
        self.write(address, &word.to_ne_bytes())
    }
}

/// Only one tool at a time: the lock is gone with the tool. Nobody else can hold it who may not trace the process, except
/// the process itself. It is of this /proc, so tools of a container and of its host do not see each other.
fn lock(file: &File, pid: i32) -> Result<(), Failure> {
    // SAFETY: flock takes a descriptor, which is open, and no memory.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(Failure::new(if error.kind() == io::ErrorKind::WouldBlock {
        format!("somebody else attaches to process {pid} at the moment: try again later")
    } else {
        format!("process {pid} cannot be locked against other tools: {error}")
    }))
}

impl Memory for Target {
    type Error = io::Error;

    fn read(&self, address: usize, bytes: &mut [u8]) -> io::Result<()> {
        self.memory.read(address, bytes)
    }

    fn reject(&self) -> io::Result<()> {
        self.memory.reject()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn is_open_in_one_tool_at_a_time() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id() as i32;
        let first = Target::open(pid).unwrap();
        let refused = Target::open(pid).unwrap_err().to_string();
        assert_eq!(refused, format!("somebody else attaches to process {pid} at the moment: try again later"));
        drop(first);
        assert!(Target::open(pid).is_ok());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
