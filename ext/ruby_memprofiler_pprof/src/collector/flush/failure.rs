//! Why there is no profile.

use magnus::Error;
use std::io;

/// Why a flush failed.
#[derive(Debug)]
pub enum FlushFailure {
    /// Ruby raised an exception.
    Raised(Error),
    /// A hook panicked, in this place.
    Panicked(&'static str),
    /// There is no memory for it.
    NoMemory,
    /// The profile could not be encoded.
    Encoding(io::Error),
}

impl From<Error> for FlushFailure {
    fn from(error: Error) -> Self {
        Self::Raised(error)
    }
}
