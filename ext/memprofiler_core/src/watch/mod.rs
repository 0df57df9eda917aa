//! When a process is about to run out of memory, so that a profile must be taken now.
//!
//! Pure decisions: [`Source`] reads the system's files, [`Watch`] says what to do about what they say, and when to look
//! again.

mod decision;
mod kept_file;
mod level;
mod pressure;
mod rate;
mod source;

pub use decision::{Look, Reason, Watch};
pub use level::Level;
pub use source::{Reading, Source};
