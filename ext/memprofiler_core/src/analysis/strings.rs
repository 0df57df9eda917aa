//! The string table of a profile that is read.

use super::builder::Builder;
use super::decode::DecodeError;
use std::sync::Arc;

/// For each of its entries the number in the builder.
pub struct Strings(Vec<u32>);

impl Strings {
    /// Puts all into the builder.
    pub fn read(table: &[&[u8]], builder: &mut Builder) -> Result<Self, DecodeError> {
        if table.first().is_none_or(|first| !first.is_empty()) {
            return Err(DecodeError::new("string table", "the first entry must be there and empty"));
        }
        let numbers = table.iter().map(|bytes| {
            let text = String::from_utf8_lossy(bytes);
            builder.string_or(&text, || Arc::from(&*text))
        });
        Ok(Self(numbers.collect()))
    }

    /// The number of entry `index`, to which `place` refers.
    #[inline]
    pub fn get(&self, index: i64, place: impl FnOnce() -> String) -> Result<u32, DecodeError> {
        let number = usize::try_from(index).ok().and_then(|index| self.0.get(index)).copied();
        number.ok_or_else(|| {
            let reason = format!("refers to string {index}, but there are only {}", self.0.len());
            DecodeError::new(place(), reason)
        })
    }
}
