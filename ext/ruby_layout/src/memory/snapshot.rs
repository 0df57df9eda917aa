//! A copy of some memory, on top of the rest.

use super::Memory;

/// What is within the copies is read from them, and the rest from the memory.
#[derive(Debug)]
pub struct Snapshot<'a, M> {
    memory: &'a M,
    copies: Vec<(usize, Vec<u8>)>,
}

impl<'a, M: Memory> Snapshot<'a, M> {
    /// Without any copies.
    pub fn new(memory: &'a M) -> Self {
        Self { memory, copies: Vec::new() }
    }

    /// Adds these bytes, which are at `address`.
    pub fn add(&mut self, address: usize, bytes: Vec<u8>) {
        self.copies.push((address, bytes));
    }
}

impl<M: Memory> Memory for Snapshot<'_, M> {
    type Error = M::Error;

    fn read(&self, address: usize, bytes: &mut [u8]) -> Result<(), M::Error> {
        for (start, copy) in &self.copies {
            let Some(offset) = address.checked_sub(*start) else { continue };
            let Some(end) = offset.checked_add(bytes.len()) else { continue };
            if let Some(found) = copy.get(offset..end) {
                bytes.copy_from_slice(found);
                return Ok(());
            }
        }
        self.memory.read(address, bytes)
    }

    fn reject(&self) -> Result<(), M::Error> {
        self.memory.reject()
    }
}
