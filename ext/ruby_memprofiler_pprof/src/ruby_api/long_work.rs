//! Lets other threads run and interrupts arrive during long work.

use super::errors;
use crate::vm::gvl;
use magnus::{Error, Ruby};
use memprofiler_core::interrupt::Interrupt;
use std::fmt::Display;

/// How many Ruby objects are created between two checks for interrupts.
const STRIDE: usize = 1 << 12;

/// Runs `work` without the GVL; its errors become a ProfileError. It may be interrupted and called again, see
/// [`gvl::interruptible`].
pub fn without_gvl<T: Send, E: Display + Send>(
    ruby: &Ruby,
    work: impl FnMut(&Interrupt) -> Result<T, E> + Send,
) -> Result<T, Error> {
    gvl::interruptible(work)?.map_err(|error| errors::profile(ruby, error.to_string()))
}

/// Lets other threads run and interrupts arrive, at some steps of a loop. May run Ruby code.
pub fn rest(step: usize) -> Result<(), Error> {
    if step % STRIDE == 0 { gvl::check_interrupts() } else { Ok(()) }
}
