//! Reads pprof.

use super::builder::Builder;
use super::estimate::{Scheme, Weighting};
use super::gunzip;
use super::outermost::Outermost;
use super::profile::Profile;
use super::samples::{Locations, SampleReader};
use super::strings::Strings;
use super::tables::TableReader;
use std::fmt::Display;

/// Why bytes could not be read as a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// They are, or decompress to, more than that.
    TooBig(u64),
    /// What is wrong, and at which place.
    Invalid(String),
}

impl DecodeError {
    /// `reason` holds at `place`.
    pub fn new(place: impl Display, reason: impl Display) -> Self {
        Self::Invalid(format!("{place}: {reason}"))
    }

    /// The same, `place` being where the place lies that it names.
    pub fn within(self, place: impl Display) -> Self {
        match self {
            Self::Invalid(what) => Self::new(place, what),
            Self::TooBig(_) => self,
        }
    }
}

impl Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooBig(limit) => write!(f, "has more than {limit} bytes when decompressed, the most allowed here"),
            Self::Invalid(what) => write!(f, "not a valid pprof profile: {what}"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Reads a profile, gzipped or not, of at most `limit` bytes when decompressed (and [`gunzip::GREATEST_LIMIT`]). Takes
/// a small multiple of that in memory, and time in proportion.
pub fn decode(bytes: &[u8], limit: u64) -> Result<Profile, DecodeError> {
    if bytes.is_empty() {
        return Err(DecodeError::new("byte 0", "there is nothing to read"));
    }
    let plain = gunzip::plain(bytes, limit)?;
    let message = Outermost::read(&plain)?;
    let mut builder = Builder::new();
    let strings = Strings::read(&message.strings, &mut builder)?;
    let mut tables = TableReader { message: &message, strings: &strings, builder: &mut builder };
    let header = tables.header()?;
    let locations = Locations { ids: &message.location_ids, numbers: tables.locations()? };
    let scheme = builder.scheme(Scheme { weighting: Weighting::of(&header), base: false });
    let mut samples = SampleReader::new(&mut builder, &strings, &locations, header.sample_types.len(), scheme);
    samples.read(&plain)?;
    let (rows, values) = samples.into_rows();
    Ok(builder.finish(header, &rows, &values))
}
