//! Made-up processes: mappings, the pages that are in memory, and their words.

use memprofiler_core::ledger::{Kind, Mapping, Places, Residency, Space, Survey};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

pub const PAGE: u64 = 4096;

#[derive(Default)]
pub struct Process {
    pub mappings: Vec<Mapping>,
    pub present: BTreeSet<u64>,
    /// Pages of files.
    pub of_files: BTreeSet<u64>,
    pub words: BTreeMap<u64, [u64; 4]>,
    /// Whether its pages cannot be looked at.
    pub closed: bool,
}

impl Process {
    /// Maps pages, to which the process can write. All of them are in memory.
    pub fn map(&mut self, kind: Kind, pages: Range<u64>) -> &mut Mapping {
        self.present.extend(pages.clone());
        self.mappings.push(Mapping {
            start: pages.start * PAGE,
            end: pages.end * PAGE,
            readable: true,
            writable: true,
            executable: false,
            kind,
            usage: None,
        });
        self.mappings.last_mut().unwrap()
    }

    /// Reserves addresses.
    pub fn reserve(&mut self, pages: Range<u64>) {
        let mapping = self.map(Kind::Anonymous, pages.clone());
        (mapping.readable, mapping.writable) = (false, false);
        self.present.retain(|page| !pages.contains(page));
    }

    pub fn survey(&self, places: Places) -> Survey {
        Survey::new(&self.mappings, &Places { most: u64::MAX, ..places }, self)
    }
}

impl Space for Process {
    fn residency(&self, addresses: &Range<u64>) -> Option<Residency> {
        let word = |page: u64| {
            let (present, of_file) = (self.present.contains(&page), self.of_files.contains(&page));
            (u64::from(present) << 63 | u64::from(of_file) << 61 | 0xabc).to_ne_bytes()
        };
        let mut residency = Residency::new(addresses.start, PAGE);
        (addresses.start / PAGE..addresses.end / PAGE).for_each(|page| residency.add(&word(page)));
        (!self.closed).then_some(residency)
    }

    fn words(&self, address: u64) -> Option<[u64; 4]> {
        self.words.get(&address).copied()
    }

    fn page_size(&self) -> u64 {
        PAGE
    }
}
