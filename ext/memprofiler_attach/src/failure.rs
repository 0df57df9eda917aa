//! What went wrong, and what to do about it.

use crate::text::printable;
use std::fmt;
use std::io::{self, Write};

/// A message for the user, without a full stop: what failed, and what would help.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    message: String,
    pending: bool,
}

impl Failure {
    /// With this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), pending: false }
    }

    /// Writes it to stderr. Whoever has started this tool may have stopped listening, which is no reason to panic, and
    /// so to end with another status.
    pub fn print(&self) {
        let _ = writeln!(io::stderr(), "{self}");
    }

    /// The same, where the process may still do what it was asked for.
    pub fn pending(self) -> Self {
        Self { pending: true, ..self }
    }

    /// Whether the process may still do what it was asked for.
    pub fn is_pending(&self) -> bool {
        self.pending
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&printable(&self.message))
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_the_terminal_nothing() {
        assert_eq!(Failure::new("/a\u{1b}[2J\u{9b}1m.so").to_string(), "/a?[2J?1m.so");
    }
}
