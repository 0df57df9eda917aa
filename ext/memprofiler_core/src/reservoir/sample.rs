//! What is kept of a sampled object.

use super::rates::RateId;
use crate::readers::Readers;
use crate::stack_tree::StackId;

/// The class of a sampled object, an id in the caller's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u32);

/// One sampled object that is alive.
#[derive(Debug, Clone, Copy)]
pub struct LiveSample {
    /// Where the object lies.
    pub address: u64,
    /// The stack that allocated it; the sample holds a reference.
    pub stack: StackId,
    /// Its class as last seen; the sample holds a reference.
    pub class: ClassId,
    /// How many garbage collections had run when it was allocated.
    pub born: u32,
    /// The probability of its inclusion.
    pub(super) rate: RateId,
    /// The round that last visited it, or that began last before it was taken; 0 if that was long ago.
    pub(super) seen: u8,
    /// Who has not been told of its allocation yet.
    pub unreported: Readers,
}

// The live set has up to millions.
const _: () = assert!(size_of::<LiveSample>() == 24);

impl LiveSample {
    /// What the caller knows of a sample; the reservoir that takes it fills in the rest.
    pub fn new(address: u64, stack: StackId, class: ClassId, born: u32, unreported: Readers) -> Self {
        Self { address, stack, class, born, rate: RateId(0), seen: 0, unreported }
    }
}
