//! Which pages are in memory.

use std::ops::Range;

/// The pages of a mapping that are in memory and that nothing has claimed yet. A page is claimed once, so parts never
/// add up to more than there is.
#[derive(Debug, Clone)]
pub struct Residency {
    start: u64,
    page_size: u64,
    pages: Vec<u8>,
}

const PRESENT: u8 = 1;
const ANONYMOUS: u8 = 2;

/// The bytes of a word of `/proc/PID/pagemap`.
pub const WORD: usize = 8;

impl Residency {
    /// Nothing is known yet of the pages from address `start` on.
    pub fn new(start: u64, page_size: u64) -> Self {
        Self { start, page_size, pages: Vec::new() }
    }

    /// Adds the next pages, from the words that `/proc/PID/pagemap` has for them.
    pub fn add(&mut self, words: &[u8]) {
        self.pages.extend(words.chunks_exact(WORD).map(|word| {
            let word = word.try_into().map_or(0, u64::from_ne_bytes);
            // Bit 63: in memory; bit 61: of a file, or shared.
            match (word >> 63 & 1, word >> 61 & 1) {
                (0, _) => 0,
                (_, 0) => PRESENT | ANONYMOUS,
                _ => PRESENT,
            }
        }));
    }

    /// Takes the next pages to be like the last ones, which are as many or more.
    pub fn repeat_last(&mut self, pages: usize) {
        let first = self.pages.len().saturating_sub(pages);
        self.pages.extend_from_within(first..);
    }

    /// How many pages there are.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Claims what is in memory of a range of addresses, with the whole page of each, and returns its bytes.
    pub fn take(&mut self, addresses: &Range<u64>) -> u64 {
        let range = self.indices(addresses);
        let pages = self.pages.get_mut(range).unwrap_or_default();
        let count = pages.iter().filter(|&&page| page != 0).count() as u64;
        pages.fill(0);
        count * self.page_size
    }

    /// Claims what is in memory of the pages around an address without a gap, at most so many bytes in each direction,
    /// and returns its bytes.
    pub fn take_around(&mut self, address: u64, most: u64) -> u64 {
        let Range { start: at, .. } = self.indices(&(address..address.saturating_add(1)));
        let most = (most / self.page_size) as usize;
        let (before, behind) = self.pages.split_at(at);
        let present = |page: &&u8| **page != 0;
        let up = behind.iter().take(most).take_while(present).count();
        let down = if up == 0 { 0 } else { before.iter().rev().take(most).take_while(present).count() };
        self.pages[at - down..at + up].fill(0);
        (down + up) as u64 * self.page_size
    }

    /// The bytes in memory of all pages that are in the range as a whole.
    pub fn inside(&self, addresses: &Range<u64>) -> u64 {
        let start = addresses.start.next_multiple_of(self.page_size);
        let end = addresses.end / self.page_size * self.page_size;
        self.count(self.indices(&(start..end.max(start))), PRESENT)
    }

    /// The bytes in memory.
    pub fn resident(&self) -> u64 {
        self.count(0..self.pages.len(), PRESENT)
    }

    /// The bytes in memory that are no pages of a file.
    pub fn anonymous(&self) -> u64 {
        self.count(0..self.pages.len(), ANONYMOUS)
    }

    /// The address of the first page in memory from `address` on.
    pub fn next(&self, address: u64) -> Option<u64> {
        let first = (address.saturating_sub(self.start) / self.page_size) as usize;
        let found = self.pages.get(first..)?.iter().position(|&page| page != 0)?;
        Some(self.start + (first + found) as u64 * self.page_size)
    }

    fn count(&self, range: Range<usize>, bit: u8) -> u64 {
        let pages = self.pages.get(range).unwrap_or_default();
        pages.iter().filter(|&&page| page & bit != 0).count() as u64 * self.page_size
    }

    fn indices(&self, addresses: &Range<u64>) -> Range<usize> {
        let index = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX).min(self.pages.len());
        let first = index(addresses.start.saturating_sub(self.start) / self.page_size);
        let end = index(addresses.end.saturating_sub(self.start).div_ceil(self.page_size));
        first.min(end)..end
    }
}
