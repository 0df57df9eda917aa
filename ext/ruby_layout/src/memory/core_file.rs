//! The memory that a process had when it crashed.

use super::Memory;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

// elf.h; 64-bit, little-endian.
const HEADER_SIZE: usize = 64;
const HEADER_START: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
const E_TYPE: usize = 16;
const ET_CORE: u64 = 4;
const E_PHOFF: usize = 32;
const E_SHOFF: usize = 40;
const E_PHNUM: usize = 56;
/// There are more program headers than fit in the field: the first section header has their number.
const PN_XNUM: u64 = 0xffff;
const SH_INFO: u64 = 44;
const PROGRAM_HEADER_SIZE: usize = 56;
const PT_LOAD: u64 = 1;
const PT_NOTE: u64 = 4;
/// The note that lists mapped files.
const NT_FILE: u64 = 0x4649_4c45;
/// More than a core file has of anything, and more bytes of notes.
const MOST: usize = 64 << 20;

/// A file that was mapped.
#[derive(Debug)]
pub struct MappedFile {
    /// The first address.
    pub start: usize,
    /// The address behind the last.
    pub end: usize,
    /// Where in the file the first address is, in bytes.
    pub offset: usize,
    /// Its name at the time.
    pub path: String,
    file: Option<File>,
}

/// Memory that is in the core file.
#[derive(Debug)]
struct Segment {
    start: usize,
    size: usize,
    offset: u64,
}

/// A core file. The kernel leaves out what can be read in the mapped files, so these are read, too: they must be those
/// that crashed.
#[derive(Debug)]
pub struct CoreFile {
    file: File,
    segments: Vec<Segment>,
    /// By address.
    pub mapped: Vec<MappedFile>,
}

impl CoreFile {
    /// Fails with InvalidData if it is no core file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let mut header = [0; HEADER_SIZE];
        let begun = file.read_exact_at(&mut header, 0);
        if begun.is_err() || !header.starts_with(&HEADER_START) || number(&header, E_TYPE, 2)? != ET_CORE {
            return Err(invalid());
        }
        let mut count = number(&header, E_PHNUM, 2)?;
        if count == PN_XNUM {
            let mut info = [0; 4];
            file.read_exact_at(&mut info, number(&header, E_SHOFF, 8)?.wrapping_add(SH_INFO))?;
            count = u32::from_le_bytes(info).into();
        }
        let size = usize::try_from(count).unwrap_or(MOST).saturating_mul(PROGRAM_HEADER_SIZE);
        let headers = part(&file, number(&header, E_PHOFF, 8)?, size)?;
        let mut this = Self { file, segments: Vec::new(), mapped: Vec::new() };
        for header in headers.chunks_exact(PROGRAM_HEADER_SIZE) {
            let (offset, size) = (number(header, 8, 8)?, number(header, 32, 8)? as usize);
            match number(header, 0, 4)? {
                PT_LOAD => this.segments.push(Segment { start: number(header, 16, 8)? as usize, size, offset }),
                PT_NOTE => this.read_notes(&part(&this.file, offset, size)?)?,
                _ => (),
            }
        }
        Ok(this)
    }

    fn read_notes(&mut self, notes: &[u8]) -> io::Result<()> {
        let mut at = 0;
        while at + 12 <= notes.len() {
            let (name, size) = (number(notes, at, 4)? as usize, number(notes, at + 4, 4)? as usize);
            let kind = number(notes, at + 8, 4)?;
            // Both are padded.
            let start = at + 12 + name.next_multiple_of(4);
            let content = notes.get(start..start.saturating_add(size)).ok_or_else(invalid)?;
            if kind == NT_FILE {
                self.read_files(content)?;
            }
            at = start + size.next_multiple_of(4);
        }
        Ok(())
    }

    fn read_files(&mut self, note: &[u8]) -> io::Result<()> {
        let (count, page) = (number(note, 0, 8)? as usize, number(note, 8, 8)? as usize);
        if count > note.len() {
            return Err(invalid());
        }
        let names = note.get(16 + 24 * count..).ok_or_else(invalid)?.split(|&byte| byte == 0);
        for (index, name) in (0..count).zip(names) {
            let field = |field: usize| Ok::<_, io::Error>(number(note, 16 + 24 * index + 8 * field, 8)? as usize);
            let path = String::from_utf8_lossy(name).into_owned();
            let file = File::open(&path).ok();
            let offset = field(2)?.wrapping_mul(page);
            self.mapped.push(MappedFile { start: field(0)?, end: field(1)?, offset, path, file });
        }
        Ok(())
    }

    /// Reads some of what is at `address`, and says how much.
    fn read_some(&self, address: usize, bytes: &mut [u8]) -> io::Result<usize> {
        let within = |start: usize, size: usize| address.checked_sub(start).filter(|&offset| offset < size);
        for segment in &self.segments {
            let Some(offset) = within(segment.start, segment.size) else { continue };
            let count = bytes.len().min(segment.size - offset);
            self.file.read_exact_at(&mut bytes[..count], segment.offset.wrapping_add(offset as u64))?;
            return Ok(count);
        }
        for mapped in &self.mapped {
            let Some(offset) = within(mapped.start, mapped.end.saturating_sub(mapped.start)) else { continue };
            let Some(file) = &mapped.file else { continue };
            let count = bytes.len().min(mapped.end - address);
            file.read_exact_at(&mut bytes[..count], mapped.offset.wrapping_add(offset) as u64)?;
            return Ok(count);
        }
        Err(io::Error::new(io::ErrorKind::NotFound, "the core file lacks this memory"))
    }
}

impl Memory for CoreFile {
    type Error = io::Error;

    fn read(&self, address: usize, bytes: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            done += self.read_some(address.wrapping_add(done), &mut bytes[done..])?;
        }
        Ok(())
    }

    fn reject(&self) -> io::Result<()> {
        Err(invalid())
    }
}

fn part(file: &File, offset: u64, size: usize) -> io::Result<Vec<u8>> {
    if size > MOST {
        return Err(invalid());
    }
    let mut bytes = vec![0; size];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// The little-endian number of `width` bytes, at most 8.
fn number(bytes: &[u8], at: usize, width: usize) -> io::Result<u64> {
    let bytes = bytes.get(at..at.saturating_add(width)).ok_or_else(invalid)?;
    Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_no_core_file() {
        let own = std::env::current_exe().and_then(|path| CoreFile::open(&path).map(|_| ()));
        assert_eq!(own.map_err(|error| error.kind()), Err(io::ErrorKind::InvalidData));
        let missing = CoreFile::open(Path::new("/no/such/file")).map(|_| ());
        assert_eq!(missing.map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
    }

    #[test]
    fn refuses_notes_that_are_cut() {
        let file = || CoreFile { file: File::open("/dev/null").unwrap(), segments: Vec::new(), mapped: Vec::new() };
        assert!(file().read_notes(&[5, 0, 0, 0, 255, 0, 0, 0, 0x45, 0x4c, 0x49, 0x46]).is_err());
        assert!(file().read_files(&[255; 32]).is_err());
        let note = [1, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0];
        assert!(file().read_files(&note).is_err());
    }
}
