//! The precision of figures that are based on samples.

use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::{Profile, Weighting};
use crate::window_group::{self, WindowGroup};

/// A sum of values, and what is known of its error.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sum {
    /// The sum.
    pub value: i64,
    /// The estimated variance of what was not sampled in windows, in its squared unit.
    pub independent_variance: f64,
    /// What was sampled in windows, by group; None if nothing was.
    pub windows: Option<Box<[f64; WindowGroup::COUNT]>>,
    /// Approximately how many sampled objects it is based on.
    pub samples: f64,
}

impl Sum {
    /// The estimated variance of what was sampled in windows, in its squared unit. In a difference, what both profiles
    /// have of a group cancels out.
    pub fn window_variance(&self) -> f64 {
        self.windows.as_ref().map_or(0.0, |sums| window_group::variance(sums))
    }

    /// The estimated variance of the sum, in its squared unit.
    pub fn variance(&self) -> f64 {
        self.independent_variance + self.window_variance()
    }
}

impl std::ops::AddAssign<&Self> for Sum {
    fn add_assign(&mut self, other: &Self) {
        self.value = self.value.saturating_add(other.value);
        self.independent_variance += other.independent_variance;
        self.samples += other.samples;
        match (&mut self.windows, &other.windows) {
            (Some(ours), Some(theirs)) => ours.iter_mut().zip(&**theirs).for_each(|(our, their)| *our += their),
            (ours @ None, Some(theirs)) => *ours = Some(theirs.clone()),
            (_, None) => {}
        }
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
        let header = profile.header();
        let counts = header.count_column(column);
        let bytes = counts.map(|counts| counts + 1).filter(|&next| header.count_column(next) == counts);
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
    /// a sum of w y is estimated by sum((1 - 1/w) w² y²). If all weights are w, that is n (w - 1) for objects, and b²/n
    /// (w - 1) for bytes if all sizes are b/n. If sizes vary within a stack and class, the true variance is greater.
    ///
    /// That is so if samples are independent. What was sampled in windows is added up by group instead.
    pub fn row(&self, number: usize) -> Sum {
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
        let scheme = self.profile.scheme(number);
        let weight = match scheme.weighting {
            Weighting::Unknown => return Sum { value, ..Sum::default() },
            Weighting::Each(weight) => weight,
            Weighting::Bytes(interval) => 1.0 / -(-mean.max(1.0) / interval).exp_m1(),
        };
        let samples = objects / weight;
        if let Some(group) = scheme.window {
            let mut windows = Box::new([0.0; WindowGroup::COUNT]);
            windows[group.number()] = value as f64;
            return Sum { value, windows: Some(windows), samples, ..Sum::default() };
        }
        let unit = if self.column == counts { 1.0 } else { mean };
        Sum { value, independent_variance: objects * (weight - 1.0) * unit * unit, samples, windows: None }
    }

    /// The sum of all rows.
    pub fn total(&self, interrupt: &Interrupt) -> Result<Sum, Interrupted> {
        let mut total = Sum::default();
        for number in 0..self.profile.rows().len() {
            interrupt.at(number)?;
            total += &self.row(number);
        }
        Ok(total)
    }
}
