//! What depends on the processor: the code that runs in the process, and how a thread is sent there and back.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::TABLE;
#[cfg(target_arch = "x86_64")]
pub use x86_64::TABLE;

use object::elf::Machine;

/// None: not on this processor.
#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
pub const TABLE: Option<Table> = None;

/// A thread's registers, as ptrace gives them.
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
pub type Registers = libc::user_regs_struct;
#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
pub type Registers = [usize; 64];

/// One processor.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// `e_machine` of its programs.
    pub machine: Machine,
    /// The register set of PTRACE_GETREGSET that holds everything but the general registers.
    pub vector_set: libc::c_int,
    /// Where a thread is.
    pub program_counter: fn(&Registers) -> usize,
    /// The end of its stack that is in use.
    pub stack_pointer: fn(&Registers) -> usize,
    /// Whether it was inside a system call when it was stopped.
    pub in_system_call: fn(&Registers) -> bool,
    /// How a stopped thread leaves for the entry [`Code::enter`] and comes back by itself.
    pub detour: fn(&Registers, &[u8], &Destination) -> Detour,
    /// What is to be written to the process.
    pub code: fn() -> Code,
}

/// Position-independent code, and the distances of its entries from its beginning.
#[derive(Debug, Clone, Copy)]
pub struct Code {
    /// The code.
    pub bytes: &'static [u8],
    /// `long(number, a, b, c, d)`: a system call.
    pub system_call: usize,
    /// `void(area)`: the postponed job. Creates the thread, if that is still wanted.
    pub job: usize,
    /// Where a thread is sent: calls the functions of the area's list, and goes back to where it was.
    pub enter: usize,
}

/// Where a thread is sent.
#[derive(Debug, Clone, Copy)]
pub struct Destination {
    /// The address of [`Code::enter`] in the process.
    pub enter: usize,
    /// The address of the area.
    pub area: usize,
    /// Whether a system call that would be restarted fails with EINTR instead.
    pub interrupt: bool,
}

/// What to write where before a thread is sent, and the registers to send it with.
#[derive(Debug)]
pub struct Detour {
    /// The registers that it comes back with, on its stack, where a signal's frame would be.
    pub frame: (usize, Vec<u8>),
    /// The vector registers, below.
    pub image: (usize, Vec<u8>),
    /// The registers.
    pub registers: Registers,
}
