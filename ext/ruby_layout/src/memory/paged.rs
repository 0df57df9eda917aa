//! Memory read in pages, each once.

use super::Memory;
use std::cell::RefCell;
use std::collections::HashMap;

const PAGE: usize = 4096;

/// Remembers the pages that were read, until it is told to forget them.
#[derive(Debug)]
pub struct Paged<M> {
    memory: M,
    pages: RefCell<HashMap<usize, Box<[u8; PAGE]>>>,
}

impl<M: Memory> Paged<M> {
    /// Reads from `memory`.
    pub fn new(memory: M) -> Self {
        Self { memory, pages: RefCell::default() }
    }

    /// Reads all pages again.
    pub fn forget(&self) {
        self.pages.borrow_mut().clear();
    }

    /// What it reads from.
    pub fn memory(&self) -> &M {
        &self.memory
    }
}

impl<M: Memory> Memory for Paged<M> {
    type Error = M::Error;

    fn read(&self, address: usize, bytes: &mut [u8]) -> Result<(), M::Error> {
        let mut pages = self.pages.borrow_mut();
        let mut done = 0;
        while done < bytes.len() {
            let at = address.wrapping_add(done);
            let (start, offset) = (at & !(PAGE - 1), at % PAGE);
            let count = (PAGE - offset).min(bytes.len() - done);
            let page = match pages.get(&start) {
                Some(page) => page,
                None => {
                    let mut page = Box::new([0; PAGE]);
                    self.memory.read(start, &mut page[..])?;
                    pages.entry(start).or_insert(page)
                }
            };
            bytes[done..done + count].copy_from_slice(&page[offset..offset + count]);
            done += count;
        }
        Ok(())
    }

    fn reject(&self) -> Result<(), M::Error> {
        self.memory.reject()
    }
}
