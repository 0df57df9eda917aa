//! Whether the frame walker is reliable in this process.

use super::options::BacktraceMethod;
use crate::vm::ractor::MainRactor;
use crate::vm::selftest;
use magnus::{Error, Ruby};
use std::sync::OnceLock;

/// The reason if it is not, once it was checked.
static FAILURE: OnceLock<Option<String>> = OnceLock::new();

/// Checks the walker at the first call.
pub fn run(ruby: &Ruby, main: MainRactor) -> Result<(), Error> {
    if FAILURE.get().is_none() {
        let failure = selftest::run(ruby, main)?;
        FAILURE.get_or_init(|| failure);
    }
    Ok(())
}

/// Whether it was checked.
pub fn has_run() -> bool {
    FAILURE.get().is_some()
}

/// Why `rb_profile_frames` is used instead of the walker; None if the walker is used, or nothing was started yet.
pub fn failure() -> Option<&'static str> {
    FAILURE.get().and_then(Option::as_deref)
}

/// The method that reads stacks when `asked` is requested.
pub fn usable(asked: BacktraceMethod) -> BacktraceMethod {
    match asked {
        BacktraceMethod::ControlFrames if failure().is_some() => BacktraceMethod::ProfileFrames,
        _ => asked,
    }
}
