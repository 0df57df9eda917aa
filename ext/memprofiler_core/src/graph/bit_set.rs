//! A set of small numbers.

/// A set of numbers below a bound, with one bit for each.
#[derive(Debug, Clone)]
pub struct BitSet(Vec<u64>);

impl BitSet {
    /// An empty set of numbers below `bound`.
    pub fn new(bound: usize) -> Self {
        Self(vec![0; bound.div_ceil(64)])
    }

    /// Adds a number.
    #[inline]
    pub fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    /// Whether it contains a number.
    #[inline]
    pub fn contains(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::BitSet;

    #[test]
    fn contains_what_was_inserted() {
        let mut set = BitSet::new(130);
        [0, 63, 64, 129].into_iter().for_each(|number| set.insert(number));
        assert_eq!((0..130).filter(|&number| set.contains(number)).collect::<Vec<_>>(), [0, 63, 64, 129]);
    }
}
