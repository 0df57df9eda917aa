//! The exported symbols of the programs and libraries in a process's memory. Their files are not read: they may be in
//! another mount namespace, deleted or replaced.

use crate::process::Mapping;
use object::LittleEndian as LE;
use object::elf::{self, Dyn64, FileHeader64, GnuHashHeader, Machine, ProgramHeader64, Sym64};
use object::pod::{self, Pod};
use object::read::elf::{FileHeader, Sym};
use ruby_layout::memory::Memory;

/// More than any image has, so that a damaged one is not followed forever.
const MOST: usize = 1 << 20;
/// Likewise of entries in its dynamic section.
const MOST_DYNAMIC: usize = 1 << 10;

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
    pub machine: Machine,
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
        let header: FileHeader64<LE> = read(memory, mapping.start)?;
        if !header.is_supported() || !header.is_little_endian() {
            return None;
        }
        let mut image = Self {
            path: mapping.path.clone(),
            machine: header.e_machine.get(LE),
            segments: Vec::new(),
            base: 0,
            symbols: 0,
            strings: 0,
            hashes: 0,
        };
        let mut dynamic = None;
        let segments = mapping.start.wrapping_add(header.e_phoff.get(LE) as usize);
        for number in 0..header.e_phnum.get(LE).into() {
            let segment: ProgramHeader64<LE> = entry(memory, segments, number)?;
            match segment.p_type.get(LE) {
                elf::PT_LOAD => image.load(mapping.start, &segment),
                elf::PT_DYNAMIC => dynamic = Some(segment),
                _ => (),
            }
        }
        image.read_dynamic(memory, &dynamic?);
        (image.symbols != 0 && image.strings != 0 && image.hashes != 0).then_some(image)
    }

    fn load(&mut self, mapped: usize, segment: &ProgramHeader64<LE>) {
        let (address, size) = (segment.p_vaddr.get(LE) as usize, segment.p_memsz.get(LE) as usize);
        if self.segments.is_empty() {
            self.base = mapped.wrapping_sub(address & !0xfff);
        }
        let start = self.base.wrapping_add(address);
        let flags = segment.p_flags.get(LE);
        self.segments.push(Segment {
            start,
            end: start.wrapping_add(size),
            executable: flags.contains(elf::PF_X),
            writable: flags.contains(elf::PF_W),
        });
    }

    fn read_dynamic<M: Memory>(&mut self, memory: &M, segment: &ProgramHeader64<LE>) {
        let address = self.base.wrapping_add(segment.p_vaddr.get(LE) as usize);
        let count = segment.p_memsz.get(LE) as usize / size_of::<Dyn64<LE>>();
        for number in 0..count.min(MOST_DYNAMIC) {
            let Some(Dyn64 { d_tag, d_val }) = entry::<Dyn64<LE>, M>(memory, address, number) else { return };
            let value = d_val.get(LE) as usize;
            // glibc relocates these where they are, musl leaves them as they are in the file.
            let address = if value < self.base { self.base.wrapping_add(value) } else { value };
            match d_tag.get(LE) {
                elf::DT_NULL => return,
                elf::DT_STRTAB => self.strings = address,
                elf::DT_SYMTAB => self.symbols = address,
                elf::DT_GNU_HASH => self.hashes = address,
                _ => (),
            }
        }
    }

    /// The exported symbol of this name.
    pub fn symbol<M: Memory>(&self, memory: &M, name: &str) -> Option<Symbol> {
        let hash = elf::gnu_hash(name.as_bytes());
        let table: GnuHashHeader<LE> = read(memory, self.hashes)?;
        let (count, first) = (table.bucket_count.get(LE), table.symbol_base.get(LE));
        let bloom = 8 * table.bloom_count.get(LE) as usize;
        let buckets = self.hashes.wrapping_add(size_of_val(&table)).wrapping_add(bloom);
        let chains = buckets.wrapping_add(4 * count as usize);
        let bucket = hash.checked_rem(count)? as usize;
        let index = memory.half(buckets.wrapping_add(4 * bucket)).ok()?;
        let start = index.checked_sub(first)? as usize;
        for number in start..start.saturating_add(MOST) {
            let found = memory.half(chains.wrapping_add(4 * number)).ok()?;
            // The last bit says whether the chain ends.
            let alike = found | 1 == hash | 1;
            let symbol = alike.then(|| self.symbol_at(memory, number.wrapping_add(first as usize), name)).flatten();
            if symbol.is_some() || found & 1 != 0 {
                return symbol;
            }
        }
        None
    }

    fn symbol_at<M: Memory>(&self, memory: &M, index: usize, name: &str) -> Option<Symbol> {
        let symbol: Sym64<LE> = entry(memory, self.symbols, index)?;
        let text = memory.bytes(self.strings.wrapping_add(symbol.st_name.get(LE) as usize), name.len() + 1).ok()?;
        let named = text.strip_suffix(b"\0")? == name.as_bytes();
        (named && !symbol.is_undefined(LE)).then(|| Symbol {
            address: self.base.wrapping_add(symbol.st_value.get(LE) as usize),
            size: symbol.st_size.get(LE) as usize,
        })
    }
}

/// Entry `number` of the table at `address`.
fn entry<T: Pod, M: Memory>(memory: &M, address: usize, number: usize) -> Option<T> {
    read(memory, address.wrapping_add(number.wrapping_mul(size_of::<T>())))
}

fn read<T: Pod, M: Memory>(memory: &M, address: usize) -> Option<T> {
    let bytes = memory.bytes(address, size_of::<T>()).ok()?;
    pod::from_bytes(&bytes).ok().map(|(&value, _)| value)
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
