//! The exported symbols of the programs and libraries in a process's memory. Their files are not read: they may be in
//! another mount namespace, deleted or replaced.

use crate::process::Mapping;
use ruby_layout::memory::Memory;

// elf.h; 64-bit, little-endian.
const HEADER_SIZE: usize = 64;
const HEADER_START: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
const E_MACHINE: usize = 18;
const E_PHOFF: usize = 32;
const E_PHENTSIZE: usize = 54;
const E_PHNUM: usize = 56;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PF_X: u32 = 1;
const PF_W: u32 = 2;
const DYNAMIC_SIZE: usize = 16;
const DT_NULL: usize = 0;
const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const DT_GNU_HASH: usize = 0x6fff_fef5;
const SYMBOL_SIZE: usize = 24;
const SHN_UNDEF: u16 = 0;
/// More than any image has, so that a damaged one is not followed forever.
const MOST: usize = 1 << 20;

/// A part of an image that is loaded as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The first address.
    pub start: usize,
    /// The address behind the last; for writable data, behind the zeros that follow what the file has.
    pub end: usize,
    /// Whether it is code.
    pub executable: bool,
    /// Whether it is data that the program changes.
    pub writable: bool,
}

/// An exported function or variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol {
    /// Where it is in the process.
    pub address: usize,
    /// In bytes.
    pub size: usize,
}

/// A program or library that is mapped.
#[derive(Debug, Clone)]
pub struct Image {
    /// Its file, as the process has it.
    pub path: String,
    /// As `EM_X86_64`.
    pub machine: u16,
    /// What is loaded, by address.
    pub segments: Vec<Segment>,
    base: usize,
    symbols: usize,
    strings: usize,
    hashes: usize,
}

impl Image {
    /// The image that begins with `mapping`; None if that is no beginning of one, or exports nothing.
    pub fn at<M: Memory>(memory: &M, mapping: &Mapping) -> Option<Self> {
        if mapping.offset != 0 || !mapping.is_readable() || !mapping.path.starts_with('/') {
            return None;
        }
        let header = memory.bytes(mapping.start, HEADER_SIZE).ok()?;
        if !header.starts_with(&HEADER_START) {
            return None;
        }
        let (size, count) = (usize::from(u16_at(&header, E_PHENTSIZE)?), usize::from(u16_at(&header, E_PHNUM)?));
        if size * count > MOST {
            return None;
        }
        let headers = memory.bytes(mapping.start.wrapping_add(word_at(&header, E_PHOFF)?), size * count).ok()?;
        let mut image = Self {
            path: mapping.path.clone(),
            machine: u16_at(&header, E_MACHINE)?,
            segments: Vec::new(),
            base: 0,
            symbols: 0,
            strings: 0,
            hashes: 0,
        };
        let mut dynamic = None;
        for header in headers.chunks_exact(size.max(1)) {
            let (kind, flags) = (u32_at(header, 0)?, u32_at(header, 4)?);
            let (address, size) = (word_at(header, 16)?, word_at(header, 40)?);
            match kind {
                PT_LOAD => image.load(mapping.start, address, size, flags),
                PT_DYNAMIC => dynamic = Some((address, size)),
                _ => (),
            }
        }
        let (address, size) = dynamic?;
        image.read_dynamic(&memory.bytes(image.base.wrapping_add(address), size.min(MOST)).ok()?);
        (image.symbols != 0 && image.strings != 0 && image.hashes != 0).then_some(image)
    }

    fn load(&mut self, mapped: usize, address: usize, size: usize, flags: u32) {
        if self.segments.is_empty() {
            self.base = mapped.wrapping_sub(address & !0xfff);
        }
        let start = self.base.wrapping_add(address);
        let (executable, writable) = (flags & PF_X != 0, flags & PF_W != 0);
        self.segments.push(Segment { start, end: start.wrapping_add(size), executable, writable });
    }

    fn read_dynamic(&mut self, entries: &[u8]) {
        for entry in entries.chunks_exact(DYNAMIC_SIZE) {
            let (Some(tag), Some(value)) = (word_at(entry, 0), word_at(entry, 8)) else { return };
            // glibc relocates these where they are, musl leaves them as they are in the file.
            let address = if value < self.base { self.base.wrapping_add(value) } else { value };
            match tag {
                DT_NULL => return,
                DT_STRTAB => self.strings = address,
                DT_SYMTAB => self.symbols = address,
                DT_GNU_HASH => self.hashes = address,
                _ => (),
            }
        }
    }

    /// The exported symbol of this name.
    pub fn symbol<M: Memory>(&self, memory: &M, name: &str) -> Option<Symbol> {
        let hash = gnu_hash(name);
        let [count, first, bloom] = [0, 4, 8].map(|offset| memory.half(self.hashes.wrapping_add(offset)).ok());
        let (count, first, bloom) = (count?, first?, bloom? as usize);
        let buckets = self.hashes.wrapping_add(16).wrapping_add(8 * bloom);
        let chains = buckets.wrapping_add(4 * count as usize);
        let bucket = hash.checked_rem(count)? as usize;
        let index = memory.half(buckets.wrapping_add(4 * bucket)).ok()?;
        let start = index.checked_sub(first)? as usize;
        for number in start..start.saturating_add(MOST) {
            let found = memory.half(chains.wrapping_add(4 * number)).ok()?;
            // The last bit says whether the chain ends.
            let alike = found | 1 == hash | 1;
            let symbol = alike.then(|| self.entry(memory, number.wrapping_add(first as usize), name)).flatten();
            if symbol.is_some() || found & 1 != 0 {
                return symbol;
            }
        }
        None
    }

    fn entry<M: Memory>(&self, memory: &M, index: usize, name: &str) -> Option<Symbol> {
        let entry = memory.bytes(self.symbols.wrapping_add(index.wrapping_mul(SYMBOL_SIZE)), SYMBOL_SIZE).ok()?;
        let text = memory.bytes(self.strings.wrapping_add(u32_at(&entry, 0)? as usize), name.len() + 1).ok()?;
        let named = text.strip_suffix(b"\0")? == name.as_bytes();
        (named && u16_at(&entry, 6)? != SHN_UNDEF).then_some(())?;
        Some(Symbol { address: self.base.wrapping_add(word_at(&entry, 8)?), size: word_at(&entry, 16)? })
    }
}

fn gnu_hash(name: &str) -> u32 {
    name.bytes().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn word_at(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::mappings;
    use ruby_layout::memory::ProcessMemory;

    #[test]
    fn finds_what_the_c_library_exports() {
        let pid = std::process::id() as i32;
        let memory = ProcessMemory::new(pid);
        let mappings = mappings(pid).unwrap_or_default();
        let images: Vec<Image> = mappings.iter().filter_map(|mapping| Image::at(&memory, mapping)).collect();
        let found = |name| images.iter().find_map(|image| image.symbol(&memory, name));
        // getpid, unlike most, has one implementation.
        assert_eq!(found("getpid").map(|symbol| symbol.address), Some(libc::getpid as *const () as usize));
        assert_eq!(found("no_such_function"), None);
    }
}
