//! What is kept of a sampled object.

use super::rates::RateId;
use crate::readers::Readers;
use crate::stack_tree::StackId;

/// The class of a sampled object, an id in the caller's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u32);

/// A sampled object that is alive.
#[derive(Debug, Clone, Copy)]
pub struct LiveSample {
    /// The address of the object.
    pub address: u64,
    /// The stack that allocated it; the sample holds a reference.
    pub stack: StackId,
    /// Its class as last seen; the sample holds a reference.
    pub class: ClassId,
    /// The number of garbage collections before it was allocated.
    pub born: u32,
    /// The inclusion probability, and the group of its window.
    pub(super) rate: RateId,
    /// The last round that visited it, or that had begun when it was taken; 0 if that was long ago.
    pub(super) seen: u8,
    /// The readers that do not know of its allocation yet.
    pub unreported: Readers,
}

// The live set can hold millions of them.
const _: () = assert!(size_of::<LiveSample>() == 24);

impl LiveSample {
    /// What the caller knows about a sample; the reservoir fills in the rest.
    pub fn new(address: u64, stack: StackId, class: ClassId, born: u32, unreported: Readers) -> Self {
        Self { address, stack, class, born, rate: RateId(0), seen: 0, unreported }
    }
}
