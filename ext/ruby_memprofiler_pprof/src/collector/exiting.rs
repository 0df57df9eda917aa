//! Whether the process exits, which profiles that are taken meanwhile say.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the program's `at_exit` blocks have been called, and flushers take their last profiles.
static EXITING: AtomicBool = AtomicBool::new(false);

/// The process exits from now on, or no longer does.
pub fn set(exiting: bool) {
    EXITING.store(exiting, Ordering::Relaxed);
}

/// What a profile of now says.
pub fn remark() -> Option<String> {
    EXITING
        .load(Ordering::Relaxed)
        .then(|| "at_exit=what threads, at_exit blocks and variables held may be gone".to_owned())
}
