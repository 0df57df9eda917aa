//! The stacks of all threads, at about the same time.

use crate::vm::Vm;
use ruby_layout::memory::Memory;
use ruby_layout::stack::Stack;
use ruby_layout::thread::Thread;
use std::io;

/// How often the list of threads is read until it makes sense.
const ATTEMPTS: usize = 100;

/// Each thread with its stack, or why that cannot be read.
pub type Sample = Vec<(Thread, io::Result<Stack>)>;

/// Reads them. Fails if the process has ended.
pub fn sample<M: Memory<Error = io::Error>>(vm: &Vm<M>) -> io::Result<Sample> {
    let mut result = threads(vm);
    for _ in 0..ATTEMPTS {
        match result {
            Err(error) if is_torn(&error) => result = threads(vm),
            _ => break,
        }
    }
    Ok(result?
        .into_iter()
        .map(|thread| (vm.reader.stack(thread.context), thread))
        .map(|(stack, thread)| (thread, stack))
        .collect())
}

fn threads<M: Memory<Error = io::Error>>(vm: &Vm<M>) -> io::Result<Vec<Thread>> {
    vm.reader.memory.forget();
    vm.reader.threads(vm.address)
}

/// Whether something changed while it was read.
fn is_torn(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData || error.raw_os_error() == Some(libc::EFAULT)
}
