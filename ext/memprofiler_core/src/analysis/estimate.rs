//! The precision of figures that are based on samples.

use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::{Profile, Weighting};
use crate::window_group::{self, WindowGroup};
use std::sync::Arc;

/// A sum of values, and what is known of its error.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sum {
    /// The sum.
    pub value: i64,
    /// The estimated variance of what was not sampled in windows, in its squared unit.
    pub independent_variance: f64,
    /// What was sampled in windows, by group; None if nothing was. Equal sums of a call and its caller share it.
    pub windows: Option<Arc<[f64; WindowGroup::COUNT]>>,
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
            (Some(ours), Some(theirs)) => {
                Arc::make_mut(ours).iter_mut().zip(&**theirs).for_each(|(our, their)| *our += their);
            }
            (ours @ None, Some(theirs)) => *ours = Some(Arc::clone(theirs)),
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
    /// The column that counts ticks, and how many there were in all, if the profile has them.
    ticks: Option<(usize, f64)>,
}

impl<'a> Estimator<'a> {
    /// For the column with that index.
    pub fn new(profile: &'a Profile, column: usize) -> Self {
        let header = profile.header();
        let counts = header.count_column(column);
        let bytes = counts.map(|counts| counts + 1).filter(|&next| header.count_column(next) == counts);
        let ticks = profile.tick_column().zip(profile.all_ticks()).map(|(column, all)| (column, all as f64));
        Self { profile, column, counts, bytes, ticks }
    }

    /// The greatest value that a sum of rows can have, where that is known: of ticks, the time in which they fell, but
    /// not in a part of a profile, which does not say what time the others have.
    pub fn most(&self) -> Option<f64> {
        let (ticks, all) = self.ticks?;
        let sum = |column: usize| -> f64 {
            (0..self.profile.rows().len()).map(|number| self.profile.values(number)[column] as f64).sum()
        };
        let is_difference = self.profile.tables().schemes.iter().any(|scheme| scheme.base);
        (!is_difference && sum(ticks) >= all).then(|| sum(self.column))
    }

    /// Whether variances and numbers of samples are meaningful for this profile and column.
    pub fn knows_error(&self) -> bool {
        self.profile.tables().schemes.iter().all(|scheme| match scheme.weighting {
            Weighting::Unknown => false,
            Weighting::Each(_) => self.counts.is_some(),
            Weighting::Ticks => self.ticks.is_some(),
            Weighting::Bytes(_) => self.counts.is_some() && self.bytes.is_some(),
        })
    }

    /// The estimated variance of what was not sampled in windows in a sum of rows, in its squared unit.
    ///
    /// Of ticks, only their split is random, since the time in which they fell is known: n of N are distributed
    /// binomially, so the variance of the part p = n/N that they stand for is p (1 - p)/N, and that of the value
    /// v = p V is v² (1 - p)/n. Rows whose ticks stand for different times have more of v²/n together than their sum
    /// has, and so has the error: it is added up over the rows.
    ///
    /// If all N ticks fell on one place, others may still have some of the time: 1 - p is taken to be 2/(N + 4) at
    /// least, as in the interval of Agresti and Coull (1998). So 3 of 3 ticks are 100 % ± 60 %, and 400 of 400 ± 0.7 %.
    pub fn variance(&self, sum: &Sum) -> f64 {
        let others = self.all_ticks().map_or(1.0, |all| (1.0 - sum.samples / all).max(2.0 / (all + 4.0)));
        sum.independent_variance * others
    }

    /// The same for the sum of all rows: the time of all ticks is known.
    pub fn variance_of_total(&self, total: &Sum) -> f64 {
        let left_out = self.all_ticks().map_or(1.0, |all| (1.0 - total.samples / all).max(0.0));
        total.independent_variance * left_out
    }

    /// The N in the formula of [`variance`](Self::variance); None if the profile's samples are no ticks, or it has
    /// none.
    pub fn all_ticks(&self) -> Option<f64> {
        self.ticks.map(|(_, all)| all).filter(|&all| all > 0.0)
    }

    /// The value of a row.
    ///
    /// A row has n = sum(w) objects of b = sum(w y) bytes, where w is a sample's weight and y its size. The variance of
    /// a sum of w y is estimated by sum((1 - 1/w) w² y²). If all weights are w, that is n (w - 1) for objects, and b²/n
    /// (w - 1) for bytes if all sizes are b/n. Where they differ by more than a factor of 2, there are several rows (see
    /// [`Stratum`](crate::stratum::Stratum)).
    ///
    /// That is so if samples are independent. What was sampled in windows is added up by group instead.
    pub fn row(&self, number: usize) -> Sum {
        let values = self.profile.values(number);
        let value = values[self.column];
        if let Some((ticks, _)) = self.ticks {
            let ticks = values[ticks].unsigned_abs() as f64;
            // What has no ticks is not sampled, but read from clocks.
            let independent_variance = if ticks > 0.0 { (value as f64).powi(2) / ticks } else { 0.0 };
            return Sum { value, independent_variance, samples: ticks, windows: None };
        }
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
            Weighting::Unknown | Weighting::Ticks => return Sum { value, ..Sum::default() },
            Weighting::Each(weight) => weight,
            Weighting::Bytes(interval) => 1.0 / -(-mean.max(1.0) / interval).exp_m1(),
        };
        let samples = objects / weight;
        if let Some(group) = scheme.window {
            let mut windows = [0.0; WindowGroup::COUNT];
            windows[group.number()] = value as f64;
            return Sum { value, windows: Some(Arc::new(windows)), samples, ..Sum::default() };
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
