//! Memory that makes no sense: whatever is read from it, nothing panics, and nothing takes forever.

use ruby_layout::memory::{Memory, Paged};
use ruby_layout::reader::Reader;
use ruby_layout::symbols::Symbols;
use ruby_layout::{line, value};
use std::cell::Cell;

/// Words that often refer to others, or are small; some cannot be read.
struct Noise {
    seed: u64,
    reads: Cell<u64>,
}

#[derive(Debug)]
struct Nothing;

impl Noise {
    fn new(seed: u64) -> Self {
        Self { seed, reads: Cell::new(0) }
    }

    fn bits(&self, address: usize) -> u64 {
        let mut bits = (address as u64 ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits ^ (bits >> 29)
    }

    fn word_at(&self, address: usize) -> u64 {
        let bits = self.bits(address);
        match bits % 8 {
            0 => 0,
            1 => u64::MAX - (bits >> 60),
            2 => (bits >> 8) & 0xff,
            3 => (bits >> 8) & 0xffff_ffff,
            // Flags of objects, of all types.
            4 => (bits >> 8) & 0x1f_f01f,
            5 => bits,
            _ => 0x1000 + ((bits >> 8) & 0xfff8),
        }
    }
}

impl Memory for Noise {
    type Error = Nothing;

    fn read(&self, address: usize, bytes: &mut [u8]) -> Result<(), Nothing> {
        self.reads.set(self.reads.get() + 1);
        assert!(bytes.len() <= 256 << 20, "{} bytes at once", bytes.len());
        if !(0x1000..0x20_0000).contains(&address) || bytes.len() > 1 << 20 {
            return Err(Nothing);
        }
        for (index, byte) in bytes.iter_mut().enumerate() {
            let at = address + index;
            *byte = self.word_at(at & !7).to_le_bytes()[at & 7];
        }
        Ok(())
    }

    fn reject(&self) -> Result<(), Nothing> {
        Err(Nothing)
    }
}

#[test]
fn nothing_panics() {
    let mut read = 0;
    for seed in 0..1000 {
        let version = [(3, 1, 2), (3, 2, 0), (3, 3, 0), (3, 4, 1), (4, 0, 6)][seed as usize % 5];
        let Some(mut reader) = Reader::new(Paged::new(Noise::new(seed)), version) else { panic!("{version:?}") };
        let at = |number: u64| 0x1000 + (reader.memory.memory().bits(number as usize) & 0xfff8) as usize;
        let [one, two, three] = [1, 2, 3].map(at);
        read += usize::from(reader.is_vm(one).is_ok());
        read += usize::from(reader.threads(one).is_ok());
        read += usize::from(reader.stack(two).is_ok());
        read += usize::from(reader.ruby_function(one, two).is_ok());
        read += usize::from(reader.native_function(three).is_ok());
        read += usize::from(line(&reader.memory, reader.layout, one, seed as usize).is_ok());
        read += usize::from(value::string(&reader.memory, reader.layout, two).is_ok());
        if let Ok(Some(symbols)) = Symbols::new(&reader.memory, reader.layout, three) {
            let _ = reader.set_names(symbols, one);
        }
        assert!(reader.memory.memory().reads.get() < 100_000);
    }
    assert!(read > 300, "only {read} came to an end without a doubt");
}
