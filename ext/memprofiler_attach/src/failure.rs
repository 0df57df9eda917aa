//! What went wrong, and what to do about it.

use std::fmt;

/// A message for the user, without a full stop: what failed, and what would help.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// With this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}
