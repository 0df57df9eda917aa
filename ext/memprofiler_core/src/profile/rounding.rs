//! Whole numbers for estimates.

/// Rounds the rows of a profile, one after another, so that each sum of successive rows is off by less than 1. If each
/// row were rounded by itself, sums would be biased, since the weights of many samples are the same: of those that
/// stand for 1.4 objects each, all would count as 1.
#[derive(Debug)]
pub struct Rounding<const N: usize> {
    /// By how much what was returned is too small so far.
    lost: [f64; N],
}

impl<const N: usize> Default for Rounding<N> {
    fn default() -> Self {
        Self { lost: [0.0; N] }
    }
}

impl<const N: usize> Rounding<N> {
    /// The values of the next row, each of which changes by less than 1. Halves are rounded down, so that at most a half
    /// is owed to the rows before: it cannot make a 0 negative.
    pub fn next(&mut self, values: [f64; N]) -> [i64; N] {
        std::array::from_fn(|column| {
            let exact = values[column] + self.lost[column];
            let rounded = (exact - 0.5).ceil();
            self.lost[column] = exact - rounded;
            rounded as i64
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_stay_as_they_are() {
        let mut rounding = Rounding::default();
        for row in [[3.0, 0.0], [0.0, 40.0], [7.0, 1e15]] {
            assert_eq!(rounding.next(row), row.map(|value| value as i64));
        }
    }

    #[test]
    fn great_values_do_not_touch_others() {
        let mut rounding = Rounding::default();
        assert_eq!([1e300, 1.25, 1.5, 1e18, 7.0].map(|value| rounding.next([value])[0])[1..3], [1, 2]);
        assert_eq!(rounding.next([80_000.0]), [80_000]);
    }

    #[test]
    fn sums_of_equal_rows_are_unbiased() {
        for weight in [1.0 / 0.7, 1.5, 1.0 / 0.6, 0.4] {
            let mut rounding = Rounding::default();
            let rows: Vec<i64> = (0..1_000).map(|_| rounding.next([weight])[0]).collect();
            assert!((rows.iter().sum::<i64>() as f64 - 1_000.0 * weight).abs() <= 0.5);
            assert!(rows.iter().all(|&row| (row as f64 - weight).abs() < 1.0));
        }
    }

    #[test]
    fn columns_are_rounded_separately() {
        let mut rounding = Rounding::default();
        assert_eq!([[0.4, 2.5], [0.4, 2.5]].map(|row| rounding.next(row)), [[0, 2], [1, 3]]);
    }

    #[test]
    fn nothing_becomes_negative() {
        for weight in [2.5, 1.25, 0.4, 12.5] {
            let mut rounding = Rounding::default();
            let rows = (0..1_000).map(|row| rounding.next([if row % 3 == 0 { weight } else { 0.0 }])[0]);
            assert!(rows.min() >= Some(0), "{weight}");
        }
    }
}
