//! Sums of what samples stand for.

use super::line::{Figure, Source};
use crate::graph::{Sample, Sums};
use crate::window_group::WindowGroup;

/// The sum, with its 95 % interval, of samples that each stand for `weight` objects of `bytes`. If only every `nth` of
/// them was measured, each stands for that many times more.
pub fn estimate(samples: impl IntoIterator<Item = (f64, u64, Option<WindowGroup>)>, nth: usize) -> Figure {
    let mut sums = Sums::default();
    for (weight, bytes, window) in samples {
        sums.add(&Sample { address: 0, site: 0, class: None, weight: weight * nth.max(1) as f64, bytes, window });
    }
    let estimate = sums.bytes();
    Figure {
        bytes: Some(u64::try_from(estimate.value).unwrap_or(0)),
        interval: Some((estimate.low.round() as u64, estimate.high.round() as u64)),
        source: Source::Estimated,
        note: None,
    }
}
