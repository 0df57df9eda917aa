//! What Linux says about a process.

mod maps;
mod permission;
mod status;

pub use maps::{Mapping, mappings};
pub use permission::{explain, is_refusal};
pub use status::{State, Status};
