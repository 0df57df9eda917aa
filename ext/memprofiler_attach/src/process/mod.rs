//! What Linux says about a process.

mod maps;
mod permission;
mod status;
mod tasks;
mod tracee;

pub use maps::{Mapping, mappings};
pub use permission::{explain, own_remedy};
pub use status::{State, Status};
pub use tasks::Tasks;
pub use tracee::next_stop;

use crate::failure::Failure;

/// The number of a process, as it was written.
pub fn parse(pid: &str) -> Result<i32, Failure> {
    let number = pid.parse().ok().filter(|&pid: &i32| pid > 0);
    number.ok_or_else(|| Failure::new(format!("{pid} is no PID: a positive number, see `memprofiler ps`")))
}
