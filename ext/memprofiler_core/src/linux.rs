//! The text of files of Linux, and figures in it.

use std::fs;
use std::io;
use std::path::Path;

/// The content of a file. In those of `/proc` the names of files and programs have any bytes: what is no UTF-8 is
/// replaced.
pub fn read(path: impl AsRef<Path>) -> io::Result<String> {
    fs::read(path).map(|bytes| {
        String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    })
}

/// The number after a word at the beginning of a line.
pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split([' ', ':']).next() == Some(name))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The bytes that such a number of kilobytes stands for.
pub(crate) fn kilobytes(text: &str, name: &str) -> Option<u64> {
    field(text, name)?.checked_mul(1024)
}
