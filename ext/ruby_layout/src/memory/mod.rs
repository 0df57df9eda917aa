//! Where words come from.

#[cfg(unix)]
mod core_file;
mod own;
mod paged;
#[cfg(target_os = "linux")]
mod process;
mod snapshot;

#[cfg(unix)]
pub use core_file::{CoreFile, MappedFile};
pub use own::OwnMemory;
pub use paged::Paged;
#[cfg(target_os = "linux")]
pub use process::ProcessMemory;
pub use snapshot::Snapshot;

/// The memory of a process. What is at an address may be anything, so every figure in it is to be doubted.
pub trait Memory {
    /// Why something cannot be read.
    type Error;

    /// Whether everything is as Ruby left it: then no chain of references is endless, and none need be cut.
    const SOUND: bool = false;

    /// Fills `bytes` with what is at `address`, or fails as a whole.
    fn read(&self, address: usize, bytes: &mut [u8]) -> Result<(), Self::Error>;

    /// The 8 bytes at `address`.
    #[inline]
    fn word(&self, address: usize) -> Result<usize, Self::Error> {
        let mut bytes = [0; size_of::<usize>()];
        self.read(address, &mut bytes)?;
        Ok(usize::from_ne_bytes(bytes))
    }

    /// The 4 bytes at `address`.
    #[inline]
    fn half(&self, address: usize) -> Result<u32, Self::Error> {
        let mut bytes = [0; size_of::<u32>()];
        self.read(address, &mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    /// To call where something cannot be what it should be: fails unless the memory is sound.
    fn reject(&self) -> Result<(), Self::Error>;

    /// `size` bytes from `address` on.
    fn bytes(&self, address: usize, size: usize) -> Result<Vec<u8>, Self::Error> {
        let mut bytes = vec![0; size];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }
}
