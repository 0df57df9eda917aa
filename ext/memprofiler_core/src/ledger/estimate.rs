//! Sums of what samples stand for.

use super::line::{Figure, Source};
use crate::graph::{Sample, Sums};
use crate::window_group::WindowGroup;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// The sum, with its 95 % interval, of samples that each stand for so many objects of so many bytes, as `measure` says.
/// It is asked about `most` of them at most, which stand for the others as well; the same `seed` picks the same ones.
///
/// Of each n neighbours one is picked at random: a fixed stride would alias with periodic programs. For sizes y, none
/// of which is negative, that adds n sum(y²) - (sum y)² to the variance, at most the (n - 1) sum(y²) of independent
/// picks, for which the interval is. The last neighbours may be fewer, and then perhaps none of them is picked.
pub fn estimate<T>(
    samples: &[T],
    most: usize,
    seed: u64,
    measure: impl Fn(&T) -> (f64, u64, Option<WindowGroup>),
) -> Figure {
    let nth = samples.len().div_ceil(most).max(1);
    let mut random = SmallRng::seed_from_u64(seed);
    let mut sums = Sums::default();
    for sample in samples.chunks(nth).filter_map(|neighbours| neighbours.get(random.random_range(0..nth))) {
        let (weight, bytes, window) = measure(sample);
        sums.add(&Sample { address: 0, site: 0, class: None, weight: weight * nth as f64, bytes, window });
    }
    let estimate = sums.bytes();
    Figure {
        bytes: Some(u64::try_from(estimate.value).unwrap_or(0)),
        interval: Some((estimate.low.round() as u64, estimate.high.round() as u64)),
        source: Source::Estimated,
        note: None,
    }
}
