//! The stacks of all threads, at about the same time.

use crate::vm::Vm;
use ruby_layout::memory::Memory;
use ruby_layout::stack::Stack;
use ruby_layout::thread::Thread;
use std::io;

/// How often the list of threads is read until it makes sense.
const ATTEMPTS: usize = 100;

/// Each thread with its stack, or why that cannot be read. Fails if the process has ended.
pub fn sample<M: Memory<Error = io::Error>>(vm: &Vm<M>) -> io::Result<Vec<(Thread, io::Result<Stack>)>> {
    let threads = threads(vm)?.into_iter();
    Ok(threads.map(|thread| (vm.reader.stack(thread.context), thread)).map(|(stack, thread)| (thread, stack)).collect())
}

/// The threads. Fails if the process has ended.
pub fn threads<M: Memory<Error = io::Error>>(vm: &Vm<M>) -> io::Result<Vec<Thread>> {
    let mut failure = None;
    for _ in 0..ATTEMPTS {
        vm.reader.memory.forget();
        match vm.reader.threads(vm.address) {
            Err(error) if is_torn(&error) => failure = Some(error),
            result => return result,
        }
    }
    Err(failure.unwrap_or_else(|| io::ErrorKind::InvalidData.into()))
}

/// Whether something changed while it was read.
pub fn is_torn(error: &io::Error) -> bool {
    // The end of what is mapped may come first, or in the middle.
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
        || error.raw_os_error() == Some(libc::EFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{self, Mapping};
    use ruby_layout::memory::ProcessMemory;

    #[test]
    fn memory_that_is_gone_in_part_is_torn() {
        let pid = std::process::id() as i32;
        let mappings = process::mappings(pid).unwrap();
        let ends_there = |mapping: &&Mapping| mappings.iter().all(|other| other.start != mapping.end);
        let last = mappings.iter().filter(|mapping| mapping.path == "[stack]").find(ends_there).unwrap();
        let memory = ProcessMemory::new(pid);
        for distance in [0, 8] {
            assert!(memory.bytes(last.end - distance, 16).is_err_and(|error| is_torn(&error)), "{distance}");
        }
    }
}
