//! The groups that sampling windows are divided into.
//!
//! Samples of one window come together, so they say less about the error of a sum than as many independent samples. Sums
//! of whole windows are independent, and few groups of windows, assigned at random, show how much such sums vary: see
//! [`Sum::variance`](crate::analysis::Sum::variance).

use std::num::NonZeroU8;

/// The group of a sampling window. `Option<WindowGroup>` is one byte: None is for samples that were not taken in
/// windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WindowGroup(NonZeroU8);

impl WindowGroup {
    /// How many groups there are.
    pub const COUNT: usize = 16;

    /// The group with this number; numbers from [`COUNT`](Self::COUNT) on begin again at 0.
    pub const fn new(number: usize) -> Self {
        Self(NonZeroU8::MIN.saturating_add((number % Self::COUNT) as u8))
    }

    /// All groups, in order.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
        (0..Self::COUNT).map(Self::new)
    }

    /// The number of the group, less than [`COUNT`](Self::COUNT).
    pub const fn number(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_numbers_from_0_on_and_need_a_byte_even_if_there_is_none() {
        assert_eq!(WindowGroup::all().map(WindowGroup::number).collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
        assert_eq!(WindowGroup::new(35), WindowGroup::new(3));
        assert_eq!(size_of::<Option<WindowGroup>>(), 1);
    }
}
