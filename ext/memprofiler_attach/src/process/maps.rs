//! `/proc/PID/maps`.

use ruby_layout::memory::MappedFile;
use std::{fs, io};

/// What is mapped at some addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The first address.
    pub start: usize,
    /// The address behind the last.
    pub end: usize,
    /// As in `rw-p`.
    pub permissions: String,
    /// Where in the file it begins, in bytes.
    pub offset: usize,
    /// The file, followed by ` (deleted)` if it has no name any more; a name like `[heap]`, or nothing.
    pub path: String,
}

impl Mapping {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let (permissions, offset) = (fields.next()?, fields.next()?);
        let path = fields.nth(2).unwrap_or_default().trim_start();
        let number = |text| usize::from_str_radix(text, 16).ok();
        Some(Self {
            start: number(start)?,
            end: number(end)?,
            permissions: permissions.to_owned(),
            offset: number(offset)?,
            path: path.to_owned(),
        })
    }

    /// A file that was mapped in a process that has left a core file, which does not say the permissions.
    pub fn of_core(mapped: &MappedFile) -> Self {
        let MappedFile { start, end, offset, path, .. } = mapped;
        Self { start: *start, end: *end, permissions: "r--p".to_owned(), offset: *offset, path: path.clone() }
    }

    /// Whether the process can read it.
    pub fn is_readable(&self) -> bool {
        self.permissions.starts_with('r')
    }
}

/// The mappings of process `pid`, by address.
pub fn mappings(pid: i32) -> io::Result<Vec<Mapping>> {
    let text = fs::read(format!("/proc/{pid}/maps"))?;
    Ok(String::from_utf8_lossy(&text).lines().filter_map(Mapping::parse).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_files_with_spaces_and_memory_without_a_name() {
        let file = Mapping::parse("7f00-7fff r-xp 00001000 fe:01 12                         /a b/c.so (deleted)");
        assert_eq!(
            file.map(|mapping| (mapping.start, mapping.end, mapping.offset, mapping.path)),
            Some((0x7f00, 0x7fff, 0x1000, "/a b/c.so (deleted)".to_owned()))
        );
        let memory = Mapping::parse("1000-2000 rw-p 00000000 00:00 0 ");
        assert!(memory.is_some_and(|memory| memory.path.is_empty() && memory.permissions == "rw-p"));
    }

    #[test]
    fn lists_the_own_program() {
        let own = mappings(std::process::id() as i32).unwrap_or_default();
        let here = lists_the_own_program as *const () as usize;
        assert!(own.iter().any(|mapping| (mapping.start..mapping.end).contains(&here) && mapping.is_readable()));
    }
}
