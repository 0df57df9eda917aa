//! The groups that sampling windows are divided into.
//!
//! Samples of one window come together, so they say less about the error of a sum than as many independent samples.
//! Sums of whole windows are independent, and few groups of windows, assigned at random, show how much such sums vary:
//! see [`variance`].

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

/// The estimated variance of the sum of the groups' sums, in its squared unit.
///
/// The windows are assigned to G groups at random, so the sums T_g of the groups are independent and equally
/// distributed, however the samples of a window depend on one another. If T is the sum of all groups, its variance is G
/// times that of one group, estimated by G / (G - 1) sum((T_g - T / G)²). With G - 1 degrees of freedom, 95 % of the
/// errors are within
/// 2.131 standard errors (Student's t).
///
/// For a single sample of weight w that is w²; for 16 samples, one of each group, it is 0.
pub fn variance(sums: &[f64; WindowGroup::COUNT]) -> f64 {
    const GROUPS: f64 = WindowGroup::COUNT as f64;
    let mean = sums.iter().sum::<f64>() / GROUPS;
    GROUPS / (GROUPS - 1.0) * sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>()
}

/// A part is packed as a number of units, of which the greatest part has so many. Coarser units would blur what the
/// groups of a site with dozens of samples differ by, and so make its intervals wider.
const UNITS: f64 = 15.0;
const BITS: usize = 4;

/// The parts of all groups, of which none is negative, in one number that keeps their proportions: for each group four
/// bits, those of group 0 the lowest, with its part in fifteenths of the greatest. 0 if all parts are 0.
pub fn pack(parts: &[f64; WindowGroup::COUNT]) -> i64 {
    let greatest = parts.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    parts.iter().rev().fold(0, |packed, part| packed << BITS | (part / greatest * UNITS).round() as u64) as i64
}

/// The parts that [`pack`] has packed, in fifteenths of the greatest.
pub fn unpack(packed: i64) -> [f64; WindowGroup::COUNT] {
    std::array::from_fn(|group| (packed as u64 >> (BITS * group) & (UNITS as u64)) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn groups_have_numbers_from_0_on_and_need_a_byte_even_if_there_is_none() {
        assert_eq!(WindowGroup::all().map(WindowGroup::number).collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
        assert_eq!(WindowGroup::new(35), WindowGroup::new(3));
        assert_eq!(size_of::<Option<WindowGroup>>(), 1);
    }

    #[test]
    fn each_group_has_four_bits_of_its_own() {
        assert_eq!(pack(&[0.0; WindowGroup::COUNT]), 0);
        assert_eq!(pack(&[7.0; WindowGroup::COUNT]), -1);
        let mut parts = [0.0; WindowGroup::COUNT];
        (parts[0], parts[1], parts[15]) = (200.0, 100.0, 300.0);
        assert_eq!(pack(&parts) as u64, 0xf000_0000_0000_005a);
        assert_eq!(unpack(pack(&parts))[..2], [10.0, 5.0]);
    }

    #[test]
    fn parts_are_kept_to_half_a_unit() {
        let mut random = SmallRng::seed_from_u64(1);
        for _ in 0..20_000 {
            let parts = [0.0; WindowGroup::COUNT].map(|_| random.random::<f64>().powi(8) * 1e9);
            let unit = parts.into_iter().fold(0.0, f64::max) / UNITS;
            for (part, units) in parts.into_iter().zip(unpack(pack(&parts))) {
                assert!((part - units * unit).abs() <= unit * 0.5001, "{parts:?}");
            }
        }
    }
}
