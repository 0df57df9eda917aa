//! The precision of figures that are based on samples.

use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::{Profile, Row, ValueType, Weighting};

/// A sum of values, and what is known of its error.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sum {
    /// The sum.
    pub value: i64,
    /// The estimated variance of the sum, in its squared unit.
    pub variance: f64,
    /// Approximately how many sampled objects it is based on.
    pub samples: f64,
}

impl std::ops::AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.value = self.value.saturating_add(other.value);
        self.variance += other.variance;
        self.samples += other.samples;
    }
}

/// Estimates for one column of a profile.
#[derive(Debug)]
pub struct Estimator<'a> {
    profile: &'a Profile,
    column: usize,
    /// The columns of the object counts and of their bytes, if the profile has them.
    counts: Option<usize>,
    bytes: Option<usize>,
}

impl<'a> Estimator<'a> {
    /// For the column with that index.
    pub fn new(profile: &'a Profile, column: usize) -> Self {
        let types = &profile.header().sample_types;
        let is = |column: usize, unit: &str| types.get(column).is_some_and(|found: &ValueType| &*found.unit == unit);
        let (counts, bytes) = if is(column, "count") {
            (Some(column), Some(column + 1).filter(|&next| is(next, "bytes")))
        } else if is(column, "bytes") {
            (column.checked_sub(1).filter(|&before| is(before, "count")), Some(column))
        } else {
            (None, None)
        };
        Self { profile, column, counts, bytes }
    }

    /// Whether variances and numbers of samples are meaningful for this profile and column.
    pub fn knows_error(&self) -> bool {
        self.profile.tables().schemes.iter().all(|scheme| match scheme.weighting {
            Weighting::Unknown => false,
            Weighting::Each(_) => self.counts.is_some(),
            Weighting::Bytes(_) => self.counts.is_some() && self.bytes.is_some(),
        })
    }

    /// The value of a row.
    ///
    /// A row has n = sum(w) objects of b = sum(w y) bytes, where w is a sample's weight and y its size. The variance of
    /// a sum of w y is estimated by sum((1 - 1/w) w² y²). If all weights are w, that is n (w - 1) for objects, and (w -
    /// 1) b²/n for bytes if all sizes are b/n. If sizes vary within a stack and class, the true variance is greater.
    pub fn row(&self, number: usize, row: Row) -> Sum {
        let values = self.profile.values(number);
        let value = values[self.column];
        let Some(counts) = self.counts else { return Sum { value, ..Sum::default() } };
        let size = |column: usize| values[column].unsigned_abs() as f64;
        let bytes = self.bytes.map_or(0.0, size);
        // Bytes without an object remain when rounding removed the object.
        let objects = if bytes > 0.0 { size(counts).max(1.0) } else { size(counts) };
        if objects == 0.0 {
            return Sum { value, ..Sum::default() };
        }
        let mean = bytes / objects;
        let weight = match self.profile.tables().schemes[row.scheme as usize].weighting {
            Weighting::Unknown => return Sum { value, ..Sum::default() },
            Weighting::Each(weight) => weight,
            Weighting::Bytes(interval) => 1.0 / -(-mean.max(1.0) / interval).exp_m1(),
        };
        let unit = if self.column == counts { 1.0 } else { mean };
        Sum { value, variance: objects * (weight - 1.0) * unit * unit, samples: objects / weight }
    }

    /// The sum of all rows.
    pub fn total(&self, interrupt: &Interrupt) -> Result<Sum, Interrupted> {
        let mut total = Sum::default();
        for (number, &row) in self.profile.rows().iter().enumerate() {
            interrupt.at(number)?;
            total += self.row(number, row);
        }
        Ok(total)
    }
}
