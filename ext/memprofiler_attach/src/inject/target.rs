//! The memory of the process, written.

use crate::failure::Failure;
use crate::process::{self, Status};
use ruby_layout::memory::{Memory, ProcessMemory};
use std::fs::{File, OpenOptions};
use std::io;
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
    /// That of process `pid`.
    pub fn open(pid: i32) -> Result<Self, Failure> {
        let file = OpenOptions::new().write(true).open(format!("/proc/{pid}/mem"));
        let file = file.map_err(|error| process::explain(pid, &error))?;
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

impl Memory for Target {
    type Error = io::Error;

    fn read(&self, address: usize, bytes: &mut [u8]) -> io::Result<()> {
        self.memory.read(address, bytes)
    }

    fn reject(&self) -> io::Result<()> {
        self.memory.reject()
    }
}
