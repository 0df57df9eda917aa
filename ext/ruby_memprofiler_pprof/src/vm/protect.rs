//! Calls into Ruby that may raise.

use magnus::Error;
use rb_sys::VALUE;

/// Runs `body`, and returns as an error what Ruby raises in it. It raises by a longjmp, which skips what the frames
/// above would drop: hence nothing that is dropped is alive across a call that may raise, unless it is made by this
/// function, or by one of magnus's that return a `Result`. `body` itself owns nothing, and does not panic.
pub fn protect<T>(body: impl FnOnce() -> T) -> Result<T, Error> {
    let mut result = None;
    magnus::rb_sys::protect(|| {
        result = Some(body());
        rb_sys::Qnil as VALUE
    })?;
    match result {
        Some(result) => Ok(result),
        // What is not an error has stored a result.
        None => std::process::abort(),
    }
}
