//! A copy of this process, in which the heap stands still while it is read, and which the program does not notice.
//!
//! IMPLEMENTATION.md, "A copy of the process", says what the copy must do and must not.

#[cfg(target_os = "linux")]
mod attempt;
#[cfg(target_os = "linux")]
mod inside;
#[cfg(target_os = "linux")]
mod isolation;
#[cfg(target_os = "linux")]
mod loss;
#[cfg(target_os = "linux")]
mod pipe;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod reading;
#[cfg(target_os = "linux")]
mod refusal;
#[cfg(target_os = "linux")]
mod under_way;

use magnus::{Error, Ruby};
use std::io::{self, Write};
use std::time::Duration;

/// What a copy may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long all of it may take, with a second attempt.
    pub wall: Duration,
    /// The bytes that the copy is expected to take at most, beyond what it shares with this process.
    pub memory: u64,
    /// The bytes that it may take besides, as far as there are so many.
    pub spare: u64,
}

/// What a copy has answered.
#[derive(Debug)]
pub struct Outcome {
    /// What the work has written.
    pub bytes: Vec<u8>,
    /// How long this process stood still while it was copied, at both attempts if there were two.
    pub pause: Duration,
    /// 1 or 2.
    pub attempts: u32,
    /// The most bytes that the copy took beyond what it shares, without what the kernel copied as either process wrote.
    pub memory: u64,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// An exception was raised in this thread while it waited.
    Raised(Error),
    /// No copy was made; why, and what would help.
    Refused(String),
    /// The copy did not answer; why not.
    Lost(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Raised(error)
    }
}

/// Runs `work` in a copy of this process, and returns what it wrote. This process stands still only while it is copied;
/// then the thread waits without the GVL, and can be interrupted. If the copy dies or hangs there is a second one.
///
/// `prepare` is called before each copy with its number, from 1, and the GVL is kept from then on. It must not raise.
///
/// What `work` changes is lost with the copy. It runs with the GVL held and without the other threads. It must not call
/// malloc or free, or wait for any lock that another thread may hold; Rust's allocations are all right. So it must not
/// start threads, look up symbols, or let Ruby allocate or run code.
#[cfg(target_os = "linux")]
pub fn run(
    ruby: &Ruby,
    limits: Limits,
    prepare: impl Fn(u32),
    work: impl FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<Outcome, Failure> {
    attempt::up_to_two(ruby, limits, prepare, work)
}

/// There is no such thing on this system.
#[cfg(not(target_os = "linux"))]
pub fn run(
    _ruby: &Ruby,
    _limits: Limits,
    _prepare: impl Fn(u32),
    _work: impl FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<Outcome, Failure> {
    Err(Failure::Refused("only Linux can copy a process unnoticed: use in_process: true".to_owned()))
}

/// Fails if the system would not give this process so much `memory` more, which [`run`] checks for a copy.
pub fn check_own_memory(memory: u64) -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    return refusal::check_own_memory(memory);
    #[cfg(not(target_os = "linux"))]
    {
        _ = memory;
        Ok(())
    }
}

/// Whether there may be a copy of this process. Needs no GVL.
pub fn is_under_way() -> bool {
    #[cfg(target_os = "linux")]
    return under_way::is_under_way();
    #[cfg(not(target_os = "linux"))]
    false
}

/// For a forked child of the program: the copy, if there is one, is its parent's.
pub fn after_fork() {
    #[cfg(target_os = "linux")]
    pipe::after_fork();
}
