//! Which sites keep pages of the heap that have free slots.

use crate::hash::Map;
use serde::{Deserialize, Serialize};

/// How many sites are listed.
const MOST: usize = 10;

/// A page of the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapPage {
    /// Its first address.
    pub start: u64,
    /// The address behind its last.
    pub end: u64,
    /// The size of a slot in bytes.
    pub slot_size: u32,
    /// How many slots it has.
    pub slots: u32,
    /// How many objects it has.
    pub live: u32,
}

impl HeapPage {
    /// The bytes of slots with an object.
    pub fn live_bytes(&self) -> u64 {
        u64::from(self.live) * u64::from(self.slot_size)
    }

    /// The bytes of slots without one.
    pub fn free_bytes(&self) -> u64 {
        u64::from(self.slots.saturating_sub(self.live)) * u64::from(self.slot_size)
    }
}

/// A site of sampled objects.
#[derive(Debug, Clone)]
pub struct Site {
    /// Where they were allocated.
    pub name: String,
    /// Their addresses, each with the number of objects that it stands for.
    pub objects: Vec<(u64, f64)>,
}

/// The free slots that the objects of a site hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldSlots {
    /// Where they were allocated.
    pub site: String,
    /// The estimated bytes: those of each page are shared by its objects.
    pub bytes: f64,
    /// The estimated number of objects.
    pub objects: f64,
}

/// What the objects of these sites hold, the most first. `pages` are in order.
pub fn held_slots(sites: &[Site], pages: &[HeapPage]) -> Vec<HeldSlots> {
    let mut held: Map<&str, (f64, f64)> = Map::default();
    for site in sites {
        let sum = held.entry(&site.name).or_default();
        for &(address, weight) in &site.objects {
            let after = pages.partition_point(|page| page.start <= address);
            let page = after.checked_sub(1).and_then(|index| pages.get(index));
            if let Some(page) = page.filter(|page| address < page.end && page.live > 0) {
                sum.0 += weight * page.free_bytes() as f64 / f64::from(page.live);
                sum.1 += weight;
            }
        }
    }
    let named = held.into_iter().map(|(site, (bytes, objects))| HeldSlots { site: site.to_owned(), bytes, objects });
    let mut held: Vec<_> = named.filter(|held| held.bytes > 0.0).collect();
    held.sort_by(|one, other| other.bytes.total_cmp(&one.bytes).then_with(|| one.site.cmp(&other.site)));
    held.truncate(MOST);
    held
}
