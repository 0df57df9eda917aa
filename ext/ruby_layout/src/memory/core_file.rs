//! The memory that a process had when it crashed.

use super::Memory;
use object::elf::{self, FileHeader64, NoteType};
use object::pod;
use object::read::ReadCache;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{LittleEndian as LE, U64};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::rc::Rc;

/// The note that lists mapped files.
const NT_FILE: NoteType = NoteType(0x4649_4c45);

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
    file: Option<Rc<File>>,
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
        let (segments, mapped) = contents(&ReadCache::new(&file)).ok_or_else(invalid)?;
        Ok(Self { file, segments, mapped })
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

/// What a core file has, and which files were mapped; None if it is none.
fn contents(core: &ReadCache<&File>) -> Option<(Vec<Segment>, Vec<MappedFile>)> {
    let header = FileHeader64::<LE>::parse(core).ok()?;
    let (mut segments, mut mapped) = (Vec::new(), Vec::new());
    if header.endian().ok()? != LE || header.e_type(LE) != elf::ET_CORE {
        return None;
    }
    for segment in header.program_headers(LE, core).ok()? {
        let (offset, size) = segment.file_range(LE);
        if segment.p_type(LE) == elf::PT_LOAD {
            segments.push(Segment { start: segment.p_vaddr(LE) as usize, size: size as usize, offset });
        }
        let Some(notes) = segment.notes(LE, core).ok()? else { continue };
        for note in notes {
            let note = note.ok()?;
            if note.n_type(LE) == NT_FILE {
                mapped.extend(mapped_files(note.desc())?);
            }
        }
    }
    Some((segments, mapped))
}

/// Those of a note: how many, the unit of their offsets, their places, their names.
fn mapped_files(note: &[u8]) -> Option<Vec<MappedFile>> {
    let (&[count, unit], rest) = pod::from_bytes::<[U64<LE>; 2]>(note).ok()?;
    let (places, names) = pod::slice_from_bytes::<[U64<LE>; 3]>(rest, count.get(LE) as usize).ok()?;
    // A big process has ten thousand mappings of some hundred files.
    let mut opened = HashMap::new();
    let files = places.iter().zip(names.split(|&byte| byte == 0)).map(|(place, name)| {
        let [start, end, offset] = place.map(|number| number.get(LE) as usize);
        let path = String::from_utf8_lossy(name).into_owned();
        let file = opened.entry(name).or_insert_with(|| regular_file(&path).map(Rc::new)).clone();
        MappedFile { start, end, offset: offset.wrapping_mul(unit.get(LE) as usize), path, file }
    });
    Some(files.collect())
}

/// None if it cannot be opened, or has a memory of its own: devices may do anything when they are opened.
fn regular_file(path: &str) -> Option<File> {
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok()
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

    fn note(paths: &[&str]) -> Vec<u8> {
        let numbers = [paths.len() as u64, 4096].into_iter().chain(paths.iter().flat_map(|_| [0x1000, 0x2000, 0]));
        let names = paths.iter().flat_map(|path| path.bytes().chain([0]));
        numbers.flat_map(u64::to_le_bytes).chain(names).collect()
    }

    #[test]
    fn opens_each_file_once() {
        let own = std::env::current_exe().unwrap();
        let own = own.to_str().unwrap();
        let mapped = mapped_files(&note(&[own, "/no/such/file", own])).unwrap();
        let [Some(first), None, Some(second)] = [0, 1, 2].map(|number: usize| mapped[number].file.as_ref()) else {
            panic!("{mapped:?}");
        };
        assert!(Rc::ptr_eq(first, second));
    }

    #[test]
    fn opens_no_device() {
        assert!(mapped_files(&note(&["/dev/zero"])).unwrap()[0].file.is_none());
    }

    #[test]
    fn refuses_notes_that_are_cut() {
        assert!(mapped_files(&[255; 32]).is_none());
        assert!(mapped_files(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0]).is_none());
    }
}
