//! pprof's format: <https://github.com/google/pprof/blob/main/proto/profile.proto>.

mod expansion;
mod field_writer;
mod gunzip;
pub mod message;
mod samples;
mod selection;
mod stream;
mod tables;
mod windows;
mod wire;
mod write;

pub use gunzip::GREATEST_LIMIT;
pub use stream::{Footer, Stream};
pub use windows::windows_key;
pub use write::{write, write_whole};

use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::{Builder, Profile};
use samples::SampleDecoder;
use std::fmt::Display;
use tables::{RawTables, References};

/// Why bytes could not be read as a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// They have more than this many bytes when decompressed.
    TooBig(u64),
    /// They expand to too much.
    Expands(expansion::Excess),
    /// Reading was interrupted.
    Interrupted(Interrupted),
    /// What is wrong, and where.
    Invalid(String),
}

impl DecodeError {
    /// The error `reason` at `place`.
    pub fn new(place: impl Display, reason: impl Display) -> Self {
        Self::Invalid(format!("{place}: {reason}"))
    }

    /// The same error, with the place it names located within `place`.
    pub fn within(self, place: impl Display) -> Self {
        match self {
            Self::Invalid(what) => Self::new(place, what),
            Self::TooBig(_) | Self::Expands(_) | Self::Interrupted(_) => self,
        }
    }
}

impl Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooBig(limit) => write!(f, "has more than {limit} bytes when decompressed, which is the limit"),
            Self::Expands(excess) => excess.fmt(f),
            Self::Interrupted(error) => error.fmt(f),
            Self::Invalid(what) => write!(f, "not a valid pprof profile: {what}"),
        }
    }
}

impl std::error::Error for DecodeError {}

impl From<Interrupted> for DecodeError {
    fn from(error: Interrupted) -> Self {
        Self::Interrupted(error)
    }
}

/// Reads a profile, gzipped or not, of at most `limit` bytes when decompressed (and at most
/// [`gunzip::GREATEST_LIMIT`]). Memory and time are proportional to that, also for everything done with the profile:
/// mostly a few bytes of memory for each, but up to 128 if many small samples were taken in windows.
pub fn decode(bytes: &[u8], limit: u64, interrupt: &Interrupt) -> Result<Profile, DecodeError> {
    if bytes.is_empty() {
        return Err(DecodeError::new("byte 0", "there is nothing to read"));
    }
    let plain = gunzip::plain(bytes, limit, interrupt)?;
    let tables = RawTables::read(&plain, interrupt)?;
    let mut builder = Builder::new();
    let references = References::new(&tables, &mut builder, interrupt)?;
    let header = references.header(&builder, interrupt)?;
    let mut samples = SampleDecoder::new(&mut builder, &references, &header);
    samples.read(&plain, interrupt)?;
    let (rows, values) = samples.into_rows();
    let profile = builder.finish(&header, &rows, &values, interrupt)?;
    expansion::check(&profile, &rows, plain.len() as u64, interrupt)?;
    Ok(profile)
}
