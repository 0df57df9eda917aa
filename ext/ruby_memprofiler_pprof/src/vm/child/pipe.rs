//! The pipe through which a copy answers. What it writes there ends with a seal, which says how long it is: an answer
//! that was cut short has none.

use std::fs::File;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// The end of the pipe that this process reads; -1 if there is none.
static READING: AtomicI32 = AtomicI32::new(-1);

/// The end of a pipe that is read. There is at most one.
#[derive(Debug)]
pub struct ReadingEnd(RawFd);

impl ReadingEnd {
    /// The descriptor.
    pub fn descriptor(&self) -> RawFd {
        self.0
    }
}

impl Drop for ReadingEnd {
    fn drop(&mut self) {
        // Unless it was closed after a fork, upon which another file may have got its number.
        if READING.compare_exchange(self.0, -1, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            close(self.0);
        }
    }
}

/// Closes the end that a forked child has inherited. Must be called right after the fork, before the program's own code
/// can close it and open another file.
pub fn after_fork() {
    let descriptor = READING.swap(-1, Ordering::Relaxed);
    if descriptor >= 0 {
        close(descriptor);
    }
}

fn close(descriptor: RawFd) {
    // SAFETY: a descriptor of ours, which is not used afterwards.
    unsafe { libc::close(descriptor) };
}

/// A new pipe, which programs started by this one do not inherit.
pub fn new() -> io::Result<(ReadingEnd, OwnedFd)> {
    let mut ends = [-1; 2];
    // SAFETY: the function writes two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    READING.store(ends[0], Ordering::Relaxed);
    // SAFETY: a new descriptor, which nobody else owns.
    Ok((ReadingEnd(ends[0]), unsafe { OwnedFd::from_raw_fd(ends[1]) }))
}

/// The end of a pipe that a copy writes to.
pub struct Answer {
    /// Not closed when dropped: there may be a message to write.
    file: ManuallyDrop<File>,
    length: u64,
}

impl Answer {
    /// Writes to `descriptor`.
    ///
    /// # Safety
    /// The descriptor must be open and belong to nobody else.
    pub unsafe fn new(descriptor: RawFd) -> Self {
        // SAFETY: required of the caller.
        Self { file: ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) }), length: 0 }
    }

    /// Writes the seal. `peak` is the most bytes that the copy has taken.
    pub fn seal(mut self, peak: u64) -> io::Result<()> {
        let [length, peak] = [self.length, peak].map(u64::to_le_bytes);
        self.file.write_all(&[MAGIC, length, peak].concat())
    }
}

impl Write for Answer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const MAGIC: [u8; 8] = *b"\x89sealed\n";
const SEAL: usize = 24;

/// What was sealed.
#[derive(Debug)]
pub struct Sealed {
    /// An answer, or a message.
    pub bytes: Vec<u8>,
    /// The most bytes that the copy has taken.
    pub peak: u64,
    /// Whether nothing precedes it.
    pub whole: bool,
}

/// Breaks the seal; None if there is none.
pub fn unseal(mut bytes: Vec<u8>) -> Option<Sealed> {
    let end = bytes.len().checked_sub(SEAL)?;
    let (magic, numbers) = bytes[end..].split_at(MAGIC.len());
    let (length, peak) = numbers.split_at(size_of::<u64>());
    let start = end.checked_sub(usize::try_from(u64::from_le_bytes(length.try_into().ok()?)).ok()?)?;
    let peak = u64::from_le_bytes(peak.try_into().ok()?);
    if magic != MAGIC {
        return None;
    }
    bytes.truncate(end);
    bytes.drain(..start);
    Some(Sealed { bytes, peak, whole: start == 0 })
}
