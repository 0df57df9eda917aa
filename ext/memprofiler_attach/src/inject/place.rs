//! Where code and data find room in a process: in the unused rests of the last pages of a library's code and data,
//! which are there already, so that nothing has to be mapped.

use super::arch::{Code, Table};
use super::area;
use super::target::Target;
use crate::elf::Image;
use crate::process::Mapping;
use ruby_layout::memory::Memory;
use std::io;

/// How many bytes the code may have.
pub const CODE_SIZE: usize = 384;
const PAGE: usize = 4096;
const ALIGNMENT: usize = 64;
const MARK_SIZE: usize = 16;
/// What all versions of this tool begin their marks with.
const MARK: &[u8] = b"mprof";

/// The places of the code and the area.
#[derive(Debug)]
pub struct Place {
    /// The area's address.
    pub area: usize,
    start: usize,
    code: Code,
    mark: [u8; MARK_SIZE],
}

impl Place {
    /// Those used before, or new ones, in the first of the images that has room.
    pub fn find(target: &Target, images: &[Image], mappings: &[Mapping], table: &Table) -> Option<Self> {
        let code = (table.code)();
        let mark = mark(code.bytes);
        let rests = |wanted: &dyn Fn(&crate::elf::Segment) -> bool, permissions: &str, size: usize| {
            let ends = images.iter().flat_map(|image| &image.segments).filter(|segment| wanted(segment));
            let rests: Vec<usize> = ends.filter_map(|segment| rest(segment.end, size)).collect();
            let mapped = |start: usize| {
                mappings.iter().any(|mapping| {
                    (mapping.start..mapping.end).contains(&start) && mapping.permissions.starts_with(permissions)
                })
            };
            let found = |start: &usize| -> Option<(usize, Vec<u8>)> {
                mapped(*start).then(|| target.bytes(*start, size).ok().map(|bytes| (*start, bytes))).flatten()
            };
            rests.iter().filter_map(found).collect::<Vec<_>>()
        };
        let used = |rests: &[(usize, Vec<u8>)]| {
            rests.iter().find(|(_, bytes)| bytes.starts_with(&mark)).map(|(start, _)| *start)
        };
        let code_rests = rests(&|segment| segment.executable, "r-xp", CODE_SIZE + MARK_SIZE);
        let free_code = || code_rests.iter().find(|(_, bytes)| !bytes.starts_with(MARK)).map(|(start, _)| *start);
        let area_rests = rests(&|segment| segment.writable, "rw-p", area::SIZE);
        let free_area =
            || area_rests.iter().find(|(_, bytes)| bytes.iter().all(|&byte| byte == 0)).map(|found| found.0);
        let start = used(&code_rests).or_else(free_code)?;
        let area = used(&area_rests).or_else(free_area)?;
        Some(Self { area, start, code, mark })
    }

    /// Writes the code, unless it is there. While a thread of the process is traced.
    pub fn write_code(&self, target: &Target) -> io::Result<()> {
        let bytes = [&self.mark, self.code.bytes].concat();
        if target.bytes(self.start, bytes.len())? == bytes {
            return Ok(());
        }
        target.write(self.start, &bytes)
    }

    /// Marks the area as this tool's.
    pub fn mark_area(&self, target: &Target) -> io::Result<()> {
        target.write(self.area, &self.mark)
    }

    /// The address of an entry.
    pub fn entry(&self, distance: fn(&Code) -> usize) -> usize {
        self.start + MARK_SIZE + distance(&self.code)
    }

    /// Whether an address is in the code.
    pub fn contains(&self, address: usize) -> bool {
        let start = self.start + MARK_SIZE;
        (start..start + self.code.bytes.len()).contains(&address)
    }
}

/// Where the page of an image's last byte has room for so many bytes behind it.
fn rest(end: usize, size: usize) -> Option<usize> {
    let start = end.next_multiple_of(ALIGNMENT);
    (end % PAGE != 0 && start + size <= end.next_multiple_of(PAGE)).then_some(start)
}

/// Different for different code: FNV-1a.
fn mark(code: &[u8]) -> [u8; MARK_SIZE] {
    let hash = code
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut mark = [0; MARK_SIZE];
    mark[..MARK.len()].copy_from_slice(MARK);
    mark[8..].copy_from_slice(&hash.to_ne_bytes());
    mark
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_only_what_is_left_of_a_page() {
        assert_eq!(rest(0x1001, 1024), Some(0x1040));
        assert_eq!(rest(0x1f00, 1024), None);
        assert_eq!(rest(0x2000, 16), None);
    }

    #[test]
    fn marks_differ() {
        assert_ne!(mark(b"a"), mark(b"b"));
    }
}
