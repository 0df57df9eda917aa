//! Splits whole numbers by group.

use crate::window_group::WindowGroup;

/// Splits `total` in proportion to `shares`, of which none is negative and at least one is positive. The parts add up
/// to the total, and each differs from its exact part by less than 1 (but for the precision of `f64`).
pub fn apportion(total: i64, shares: &[f64; WindowGroup::COUNT]) -> [i64; WindowGroup::COUNT] {
    // Rounding the sums up to each group, instead of each part, leaves no remainder.
    let sum: f64 = shares.iter().sum();
    let (mut shares_so_far, mut total_so_far) = (0.0, 0);
    shares.map(|share| {
        shares_so_far += share;
        let up_to_here =
            if shares_so_far < sum { (total as f64 * (shares_so_far / sum)).round() as i64 } else { total };
        up_to_here - std::mem::replace(&mut total_so_far, up_to_here)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn parts_add_up_to_the_total_and_are_in_proportion() {
        let mut random = SmallRng::seed_from_u64(1);
        for step in 0..20_000 {
            let mut shares =
                [0.0; WindowGroup::COUNT].map(|_: f64| random.random_range(0..4_u32).saturating_sub(1).into());
            shares[random.random_range(0..WindowGroup::COUNT)] = random.random_range(1..=15_u32).into();
            let total = random.random_range(-1_000_000..1_000_000) >> (step % 20);
            let parts = apportion(total, &shares);
            assert_eq!(parts.iter().sum::<i64>(), total);
            let unit = total as f64 / shares.iter().sum::<f64>();
            for (part, share) in parts.into_iter().zip(shares) {
                assert!((part as f64 - unit * share).abs() < 1.0 + 1e-6, "{total} {shares:?}");
                assert!(share > 0.0 || part == 0, "{total} {shares:?}");
            }
        }
    }

    #[test]
    fn the_greatest_totals_are_split_without_overflow() {
        for total in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX] {
            for shares in [[1.0; 16], [15.0; 16], std::array::from_fn(|group| group as f64)] {
                assert_eq!(apportion(total, &shares).into_iter().fold(0, i64::wrapping_add), total);
            }
        }
    }
}
