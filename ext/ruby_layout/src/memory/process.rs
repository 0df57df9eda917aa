//! The memory of another process, read while that goes on.

use super::Memory;
use std::io;

/// The memory of a process. The kernel lets those read it that may trace the process.
#[derive(Debug, Clone, Copy)]
pub struct ProcessMemory {
    pid: libc::pid_t,
}

impl ProcessMemory {
    /// That of process `pid`, which need not exist.
    pub fn new(pid: i32) -> Self {
        Self { pid }
    }
}

impl Memory for ProcessMemory {
    type Error = io::Error;

    fn read(&self, address: usize, bytes: &mut [u8]) -> io::Result<()> {
        let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
        // SAFETY: the kernel writes only to `bytes`, which are borrowed exclusively, and checks the other address
        // itself.
        let read = unsafe { libc::process_vm_readv(self.pid, &raw const local, 1, &raw const remote, 1, 0) };
        match usize::try_from(read) {
            Ok(read) if read == bytes.len() => Ok(()),
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    fn reject(&self) -> io::Result<()> {
        Err(io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> ProcessMemory {
        ProcessMemory::new(std::process::id() as i32)
    }

    #[test]
    fn reads_words() {
        let words = [7_usize, 8];
        assert_eq!(own().word(words.as_ptr() as usize + 8).ok(), Some(8));
        assert_eq!(own().half(words.as_ptr() as usize).ok(), Some(7));
    }

    #[test]
    fn fails_where_nothing_is_mapped() {
        assert!(own().word(0).is_err());
        assert!(own().word(usize::MAX - 3).is_err());
    }

    #[test]
    fn fails_without_a_process() {
        assert_eq!(ProcessMemory::new(i32::MAX).word(0x1000).map_err(|e| e.raw_os_error()), Err(Some(libc::ESRCH)));
    }
}
