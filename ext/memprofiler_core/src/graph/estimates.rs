//! Estimates from samples.

use super::answer::Estimate;
use super::question::Sample;
use crate::analysis::Sum;
use crate::window_group::WindowGroup;
use std::sync::Arc;

/// Half of the width of a 95 % interval in standard errors: for what was sampled independently, and for what was
/// sampled in windows (see [`Sum::window_variance`]).
const Z: f64 = 1.96;
const T: f64 = 2.131;

/// The sums of the samples of a site.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    objects: Sum,
    bytes: Sum,
    /// How many samples there are.
    pub samples: u64,
    /// How many objects they stand for.
    pub object_count: f64,
    /// The bytes of those.
    pub byte_count: f64,
}

impl Sums {
    /// Adds a sample. One of weight w and size y that was not taken in a window adds w (w - 1) y² to the variance: as
    /// in [`Estimator::row`](crate::analysis::Estimator::row), but with its own size and weight.
    pub fn add(&mut self, sample: &Sample) {
        self.samples += 1;
        self.object_count += sample.weight;
        self.byte_count += sample.weighted_bytes();
        for (sum, size) in [(&mut self.objects, 1.0), (&mut self.bytes, sample.bytes as f64)] {
            sum.samples += 1.0;
            match sample.window {
                Some(group) => {
                    let windows = sum.windows.get_or_insert_with(|| Arc::new([0.0; WindowGroup::COUNT]));
                    Arc::make_mut(windows)[group.number()] += sample.weight * size;
                }
                None => sum.independent_variance += sample.weight * (sample.weight - 1.0).max(0.0) * size * size,
            }
        }
    }

    /// The estimated number of objects.
    pub fn objects(&self) -> Estimate {
        estimate(&self.objects, self.object_count)
    }

    /// Their estimated bytes.
    pub fn bytes(&self) -> Estimate {
        estimate(&self.bytes, self.byte_count)
    }
}

/// As `MemprofilerPprof::Profile::Estimate` does: the margins of both kinds of samples are independent of one another.
fn estimate(sum: &Sum, value: f64) -> Estimate {
    let margin = (Z * sum.independent_variance.sqrt()).hypot(T * sum.window_variance().sqrt());
    Estimate {
        value: value.round() as i64,
        low: (value - margin).max(0.0),
        high: value + margin,
        samples: sum.samples,
        variance: sum.variance(),
        windows: sum.windows.as_deref().copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(samples: impl IntoIterator<Item = (f64, u64, Option<usize>)>) -> Sums {
        let mut sums = Sums::default();
        for (weight, bytes, window) in samples {
            sums.add(&Sample { address: 0, site: 0, class: None, weight, bytes, window: window.map(WindowGroup::new) });
        }
        sums
    }

    #[test]
    fn independent_samples_have_the_interval_of_a_profile() {
        // 25 samples of 100 objects: a standard error of sqrt(2500 * 99).
        let sums = sums([(100.0, 40, None); 25]);
        let objects = sums.objects();
        assert_eq!((objects.value, objects.samples, objects.variance), (2500, 25.0, 2500.0 * 99.0));
        assert!((objects.high - 2500.0 - 1.96 * 247_500_f64.sqrt()).abs() < 1e-6);
        assert!((objects.low + objects.high - 5000.0).abs() < 1e-6);
        assert_eq!((sums.bytes().value, sums.bytes().variance), (100_000, 2500.0 * 99.0 * 1600.0));
    }

    #[test]
    fn an_object_that_stands_for_itself_is_certain() {
        let bytes = sums([(1.0, 40, None), (1.0, 400, None)]).bytes();
        assert_eq!((bytes.value, bytes.low, bytes.high), (440, 440.0, 440.0));
    }

    #[test]
    fn samples_of_one_window_say_less() {
        let one = sums([(100.0, 40, Some(3)); 30]).objects();
        assert_eq!((one.value, one.low, one.variance), (3000, 0.0, 9e6));
        assert!((one.high - 3000.0 - 2.131 * 3000.0).abs() < 1e-6);
        let several = sums((0..30).map(|number| (100.0, 40, Some(number % 15)))).objects();
        assert!((several.variance - 40_000.0).abs() < 1e-6);
        assert_eq!(several.windows.map(|groups| groups[..2].to_vec()), Some(vec![200.0, 200.0]));
    }
}
