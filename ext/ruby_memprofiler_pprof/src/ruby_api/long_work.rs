//! What may take long, so that other threads run and interrupts come through.

use super::errors;
use crate::vm::threads;
use magnus::{Error, Ruby};
use memprofiler_core::interrupt::Interrupt;
use std::fmt::Display;

/// How many Ruby objects are made between two looks for interrupts.
const STRIDE: usize = 1 << 12;

/// Runs `work` without the GVL; what it fails with is a ProfileError. It may be interrupted and called again, see
/// [`threads::interruptible`].
pub fn without_gvl<T: Send, E: Display + Send>(
    ruby: &Ruby,
    work: impl FnMut(&Interrupt) -> Result<T, E> + Send,
) -> Result<T, Error> {
    threads::interruptible(work)?.map_err(|error| errors::profile(ruby, error.to_string()))
}

/// Lets other threads run and interrupts come through at step `step` of a loop, now and then. Ruby code may run.
pub fn rest(step: usize) -> Result<(), Error> {
    if step % STRIDE == 0 { threads::check_interrupts() } else { Ok(()) }
}
