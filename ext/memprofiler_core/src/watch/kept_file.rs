//! Files that stay open in a program that may close them.

use std::fs::File;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file that is read again and again. Programs that become daemons close all descriptors that they find, and open
/// their own files in the same places: those are neither read nor closed here.
#[derive(Debug)]
pub struct KeptFile {
    /// None only while this is dropped.
    file: Option<File>,
    /// Device and inode.
    identity: (u64, u64),
}

impl KeptFile {
    /// Opens it; None if that fails.
    pub fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let identity = identity(&file)?;
        Some(Self { file: Some(file), identity })
    }

    /// The file; None if somebody has closed it.
    pub fn get(&self) -> Option<&File> {
        self.file.as_ref().filter(|file| identity(file) == Some(self.identity))
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        if self.get().is_none() {
            // The descriptor is somebody else's now: forgotten, not closed.
            let _ = self.file.take().map(IntoRawFd::into_raw_fd);
        }
    }
}

fn identity(file: &File) -> Option<(u64, u64)> {
    file.metadata().ok().map(|data| (data.dev(), data.ino()))
}
