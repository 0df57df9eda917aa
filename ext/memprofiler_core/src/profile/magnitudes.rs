//! Which rows can be added up without making their sum look too certain.

use super::{Header, Scheme, Weighting};

/// Tells the orders of magnitude of the mean sizes of rows' objects.
///
/// The variance of a row's bytes is estimated from their mean: n objects of b bytes contribute b²/n. A row of large
/// objects would lose most of that if one of many small objects were added to it, since (b + b')²/(n + n') is at most
/// b²/n + b'²/n'. If one mean is at most twice the other, at least 8/9 of it is left.
#[derive(Debug)]
pub struct Magnitudes {
    /// The columns of counts that the bytes of the same objects follow.
    counts: Vec<usize>,
}

impl Magnitudes {
    /// For profiles with that header.
    pub fn of(header: &Header) -> Self {
        let columns = 0..header.sample_types.len();
        let counts = columns.filter(|&count| {
            header.count_column(count) == Some(count) && header.count_column(count + 1) == Some(count)
        });
        Self { counts: counts.collect() }
    }

    /// That of a row, as a number; 0 where sizes have no influence on how certain a sum is.
    pub fn of_row(&self, scheme: Scheme, values: &[i64]) -> u32 {
        if scheme.window.is_some() || matches!(scheme.weighting, Weighting::Unknown | Weighting::Ticks) {
            return 0;
        }
        self.counts.iter().fold(0, |magnitude: u32, &count| {
            let [objects, bytes] = [count, count + 1].map(|column| values[column].unsigned_abs());
            // Six bits for each; five columns of counts are enough.
            magnitude.wrapping_shl(6) | (bytes / objects.max(1)).max(1).ilog2()
        })
    }
}
