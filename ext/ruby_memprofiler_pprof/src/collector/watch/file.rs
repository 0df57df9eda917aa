//! The names of files that are written without Ruby. What `AtomicFile` and `FilePattern` do in Ruby, as far as it is
//! needed here.

use memprofiler_core::ledger::utc;
use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions, create_dir_all, hard_link, rename, symlink_metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What stands for the time of writing in a file's name: the end of 9999, as `%{isotime}` and as `%{unixtime}`.
const LATER: [&str; 2] = ["99991231T235959Z", "253402300799"];

/// The name with the time that it is now.
pub fn dated(path: &Path) -> PathBuf {
    let seconds = now().as_secs();
    let times = [utc::format(seconds).replace(['-', ':'], ""), seconds.to_string()];
    let name = LATER.into_iter().zip(times).fold(path.as_os_str().as_bytes().to_vec(), |name, (later, time)| {
        replace(&name, later.as_bytes(), time.as_bytes())
    });
    OsString::from_vec(name).into()
}

fn replace(mut text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::new();
    while let Some(at) = text.windows(from.len()).position(|part| part == from) {
        replaced.extend_from_slice(&text[..at]);
        replaced.extend_from_slice(to);
        text = &text[at + from.len()..];
    }
    replaced.extend_from_slice(text);
    replaced
}

/// As AtomicFile makes it: only its owner can enter it, but parents may have other uses.
fn make(directory: &Path) -> io::Result<()> {
    if let Some(parent) = directory.parent() {
        create_dir_all(parent)?;
    }
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// The name with a number before the extension, as AtomicFile's: that of `a.pb.gz` is `.pb.gz`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let stem = name.iter().rposition(|&byte| byte == b'.').map_or(name, |dot| &name[..dot]);
    let (stem, extension) = name.split_at(stem.strip_suffix(b".pb").unwrap_or(stem).len());
    path.with_file_name(OsString::from_vec([stem, format!("_x{number}").as_bytes(), extension].concat()))
}

/// A file in the directory of `path`, with a name like those of AtomicFile, which are removed when they are left behind.
pub fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    make(directory)?;
    let time = now().as_nanos() as u64;
    let path = directory.join(format!(".memprofiler-{:016x}.tmp", time ^ u64::from(std::process::id()) << 40));
    let options =
        OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(&path);
    options.map(|file| (path, file))
}

/// Gives the file its name, or that with a number if it is taken. Returns the name.
pub fn publish(temporary: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut name = path.to_owned();
    for number in 1..100 {
        match hard_link(temporary, &name) {
            Ok(()) => return Ok(name),
            // Not every file system has hard links.
            Err(error) if error.kind() != ErrorKind::AlreadyExists && symlink_metadata(&name).is_err() => {
                return rename(temporary, &name).map(|()| name);
            }
            Err(_) => {}
        }
        name = numbered(path, number);
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// The time since 1970.
pub fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
