//! What Linux says about a process as a whole.

use crate::linux::kilobytes;

/// The memory of a process in bytes, from `/proc/PID/status`; what is missing there is None.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// In memory.
    pub resident: Option<u64>,
    /// In memory, at most so far.
    pub peak: Option<u64>,
    /// In memory, and neither of a file nor shared on purpose.
    pub anonymous: Option<u64>,
    /// In memory, pages of files or shared.
    pub files: Option<u64>,
    /// In swap.
    pub swap: Option<u64>,
}

/// Where the stack of a thread ends that waits, from the content of `/proc/PID/task/TID/syscall`.
pub fn stack_pointer(syscall: &str) -> Option<u64> {
    // The last two are the stack pointer and the program counter.
    let pointer = syscall.split_ascii_whitespace().rev().nth(1)?;
    u64::from_str_radix(pointer.strip_prefix("0x")?, 16).ok()
}

impl Process {
    /// From the content of `/proc/PID/status`.
    pub fn parse(status: &str) -> Self {
        let field = |name| kilobytes(status, name);
        Self {
            resident: field("VmRSS"),
            peak: field("VmHWM"),
            anonymous: field("RssAnon"),
            files: field("RssFile").map(|files| files + field("RssShmem").unwrap_or(0)),
            swap: field("VmSwap"),
        }
    }
}
