//! Gzip decompression with a size limit.

use super::DecodeError;
use crate::interrupt::Interrupt;
use flate2::bufread::MultiGzDecoder;
use std::borrow::Cow;
use std::io::Read;

/// The largest size a profile can ever have, in bytes: its entries are numbered with 32 bits.
pub const GREATEST_LIMIT: u64 = u32::MAX as u64;

/// The smallest step by which the buffer grows, in bytes.
const LEAST_STEP: usize = 1 << 18;

/// How many bytes are decompressed at once. Each call of the decompressor copies its window.
const BATCH: usize = 4 << 20;

/// The largest expansion that deflate can achieve, in bytes out per byte in.
const GREATEST_RATIO: u64 = 1032;

/// `bytes` as they are, or decompressed if they are gzipped; an error if the result has more than `limit` bytes.
pub fn plain<'a>(bytes: &'a [u8], limit: u64, interrupt: &Interrupt) -> Result<Cow<'a, [u8]>, DecodeError> {
    let limit = limit.min(GREATEST_LIMIT);
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return if bytes.len() as u64 > limit { Err(DecodeError::TooBig(limit)) } else { Ok(Cow::Borrowed(bytes)) };
    }
    let mut decoder = MultiGzDecoder::new(bytes);
    // One byte more, because the end is noticed only when there is room left.
    let (mut plain, mut filled) = (vec![0; stated_size(bytes).min(limit) as usize + 1], 0);
    loop {
        if filled == plain.len() {
            let more = plain.len().max(LEAST_STEP).min((limit + 1) as usize - filled);
            plain.resize(filled + more, 0);
        }
        interrupt.check()?;
        let end = plain.len().min(filled + BATCH);
        let read = decoder.read(&mut plain[filled..end]);
        let position = bytes.len() - decoder.get_ref().len();
        let read =
            read.map_err(|error| DecodeError::new(format_args!("byte {position} of the gzipped data"), error))?;
        filled += read;
        if filled as u64 > limit {
            return Err(DecodeError::TooBig(limit));
        }
        if read == 0 {
            plain.truncate(filled);
            return Ok(Cow::Owned(plain));
        }
    }
}

/// The decompressed size as the data states it, up to the largest that is possible. If it lies, that costs nothing:
/// memory that is never written to is not allocated.
fn stated_size(gzipped: &[u8]) -> u64 {
    let stated = gzipped.last_chunk().map_or(0, |&last| u32::from_le_bytes(last));
    u64::from(stated).min(GREATEST_RATIO * gzipped.len() as u64)
}
