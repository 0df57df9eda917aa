//! What was allocated and has died again before a flush could see it.

use crate::live_set::ClassId;
use crate::readers::Readers;
use crate::stack_tree::StackId;
use crate::sums::Sums;
use std::ops::AddAssign;

/// Objects of one stack and class, as estimates for the whole program.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Allocated {
    /// How many.
    pub objects: f64,
    /// Their bytes.
    pub bytes: f64,
}

impl AddAssign for Allocated {
    fn add_assign(&mut self, other: Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
    }
}

/// What a sum is of: the objects of one stack and class of which these readers do not know yet.
pub type Kind = (StackId, ClassId, Readers);

/// Sums per stack, class and readers, so that its size depends on the number of places that allocate, not of objects.
/// Each entry holds a reference to its stack and class.
pub type Tally = Sums<Kind, Allocated>;
