//! Writes the fields of pprof's outermost message.

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use std::io::{self, Write};

/// Streams one field after another into the compressor, so that the uncompressed profile never exists as a whole.
pub struct FieldWriter<W: Write = Vec<u8>> {
    gzip: GzEncoder<W>,
    /// What is not compressed yet. Each call of the compressor has a fixed cost, about that of compressing 10 KB.
    pending: Vec<u8>,
}

/// How many bytes are compressed at a time.
const BATCH: usize = 64 << 10;

impl FieldWriter {
    /// A writer with no output yet. `level` is gzip's, 0 to 9.
    pub fn new(level: u32) -> Self {
        Self::to(Vec::new(), level, 0)
    }
}

impl<W: Write> FieldWriter<W> {
    /// A writer to `out`, with `reserved` bytes for what waits to be compressed.
    pub fn to(out: W, level: u32, reserved: usize) -> Self {
        Self { gzip: GzEncoder::new(out, Compression::new(level)), pending: Vec::with_capacity(reserved) }
    }

    /// Where the gzipped bytes went.
    pub fn finish(mut self) -> io::Result<W> {
        self.compress()?;
        self.gzip.finish()
    }

    /// One message.
    pub fn message(&mut self, number: u32, message: &impl Message) -> io::Result<()> {
        encode_key(number, WireType::LengthDelimited, &mut self.pending);
        // A Vec can hold any message that fits into memory.
        message.encode_length_delimited(&mut self.pending).map_err(io::Error::other)?;
        self.compress_batch()
    }

    /// A string.
    pub fn bytes(&mut self, number: u32, bytes: &[u8]) -> io::Result<()> {
        encode_key(number, WireType::LengthDelimited, &mut self.pending);
        encode_varint(bytes.len() as u64, &mut self.pending);
        self.pending.extend_from_slice(bytes);
        self.compress_batch()
    }

    /// A number.
    pub fn number(&mut self, number: u32, value: i64) -> io::Result<()> {
        encode_key(number, WireType::Varint, &mut self.pending);
        encode_varint(value as u64, &mut self.pending);
        self.compress_batch()
    }

    fn compress_batch(&mut self) -> io::Result<()> {
        if self.pending.len() < BATCH { Ok(()) } else { self.compress() }
    }

    fn compress(&mut self) -> io::Result<()> {
        self.gzip.write_all(&self.pending)?;
        self.pending.clear();
        Ok(())
    }
}
