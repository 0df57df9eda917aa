//! Readers of a profiler. Each of them learns of every allocation once, independently of the others.

/// A set of readers, which are numbers below [`Readers::MOST`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Readers(u8);

impl Readers {
    /// The maximum number of readers.
    pub const MOST: usize = u8::BITS as usize;
    /// Nobody.
    pub const NONE: Self = Self(0);

    /// The set of one reader; empty if there is no such number.
    pub fn only(number: usize) -> Self {
        Self(if number < Self::MOST { 1 << number } else { 0 })
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set contains all of `others`.
    pub fn contain(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// The union with `others`.
    #[must_use]
    pub fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// The readers that are not in `others`.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// The intersection with `others`.
    #[must_use]
    pub fn common(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// The lowest number that is not in the set.
    pub fn free(self) -> Option<usize> {
        (0..Self::MOST).find(|&number| !self.contain(Self::only(number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_a_set() {
        let both = Readers::only(0).with(Readers::only(7));
        assert!(both.contain(Readers::only(7)) && !both.contain(Readers::only(1)));
        assert_eq!(both.without(Readers::only(0)), Readers::only(7));
        assert!(both.without(both).is_empty());
        assert_eq!(both.common(Readers::only(7).with(Readers::only(1))), Readers::only(7));
    }

    #[test]
    fn have_a_free_number_until_there_are_too_many() {
        let mut readers = Readers::NONE;
        for number in 0..Readers::MOST {
            assert_eq!(readers.free(), Some(number));
            readers = readers.with(Readers::only(number));
        }
        assert_eq!(readers.free(), None);
        assert_eq!(Readers::only(Readers::MOST), Readers::NONE);
    }
}
