//! Why there is no profile.

use magnus::Error;
use std::io;

/// Why a flush failed.
#[derive(Debug)]
pub enum FlushFailure {
    /// By an exception that Ruby raised.
    Raised(Error),
    /// A hook has panicked, in this place.
    Panicked(&'static str),
    /// The profile could not be encoded.
    Encoding(io::Error),
}

impl From<Error> for FlushFailure {
    fn from(error: Error) -> Self {
        Self::Raised(error)
    }
}
