//! Calls into Ruby that may raise.

use magnus::Error;
use rb_sys::VALUE;

/// Runs `body`, and returns what Ruby raises in it as an error. Ruby raises by a longjmp, which skips the drops of the
/// frames above. Hence nothing that needs dropping may be alive across a call that can raise, unless that goes through
/// this function, or through one of magnus's that return a `Result`. `body` itself must own nothing, and must not
/// panic.
pub fn protect<T>(body: impl FnOnce() -> T) -> Result<T, Error> {
    let mut result = None;
    magnus::rb_sys::protect(|| {
        result = Some(body());
        rb_sys::Qnil as VALUE
    })?;
    match result {
        Some(result) => Ok(result),
        // Unless it failed, it has stored a result.
        None => std::process::abort(),
    }
}
