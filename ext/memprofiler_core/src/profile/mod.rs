//! A profile in memory: built by a flush, read from a file, or derived from others.

mod apportion;
mod builder;
mod combine;
mod headers;
mod magnitudes;
mod prefix_tree;
mod records;
mod renumber;
mod rounding;
mod rows;
mod sort;
mod ticks;
mod weighting;

pub use apportion::apportion;
pub use builder::Builder;
pub use combine::{CombineError, Merger, diff, equal, merge};
pub use headers::Incompatible;
pub use records::{
    EMPTY_STACK, Frame, Function, Header, Label, LabelValue, Line, Location, Mapping, Row, Sample, Tables, ValueType,
};
pub use rounding::Rounding;
pub use weighting::{Scheme, Weighting};

pub(crate) use headers::columns;
pub(crate) use magnitudes::Magnitudes;
pub(crate) use prefix_tree::{PrefixTree, ROOT, add_to_parents};
pub(crate) use renumber::{Lazy, Used};
pub(crate) use sort::sort_by_number;

use crate::interrupt::{Interrupt, Interrupted};
use rows::{SortedRows, sum};
use std::ops::Range;
use std::sync::Arc;

/// A profile. It is immutable; profiles derived from it share its tables.
#[derive(Debug, Clone)]
pub struct Profile {
    header: Arc<Header>,
    tables: Arc<Tables>,
    /// Sorted and distinct; each has a value other than 0.
    rows: Vec<Row>,
    /// One per row and sample type.
    values: Vec<i64>,
    /// The rows of each sample. Leaves out samples whose values are all 0, as a difference can have.
    samples: Vec<Range<u32>>,
}

impl Profile {
    /// Assembles a profile.
    fn new(header: Arc<Header>, tables: Arc<Tables>, content: SortedRows) -> Self {
        let SortedRows { rows, values, samples } = content;
        Self { header, tables, rows, values, samples }
    }

    /// What the profile says about itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What its samples refer to, possibly more.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Whether this is a difference of two profiles, whose values can be negative.
    pub fn is_difference(&self) -> bool {
        self.tables.schemes.iter().any(|scheme| scheme.base)
    }

    /// Whether some of its samples were taken in windows. (Those may have been filtered out.)
    pub fn is_sampled_in_windows(&self) -> bool {
        self.tables.schemes.iter().any(|scheme| scheme.window.is_some())
    }

    /// Its rows.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The values of a row.
    pub fn values(&self, row: usize) -> &[i64] {
        let width = self.header.sample_types.len();
        &self.values[row * width..][..width]
    }

    /// How the samples of a row were taken.
    pub fn scheme(&self, row: usize) -> Scheme {
        self.tables.schemes[self.rows[row].scheme as usize]
    }

    /// The sums of some rows, one per sample type.
    pub fn sum(&self, rows: impl Iterator<Item = usize>) -> Vec<i64> {
        sum(&self.values, self.header.sample_types.len(), rows)
    }

    /// The values of all rows.
    pub fn all_values(&self) -> &[i64] {
        &self.values
    }

    /// The number of samples.
    pub fn sample_count(&self) -> usize {
        self.samples.len()
    }

    /// One sample, by its number.
    pub fn sample(&self, number: usize) -> Option<Sample> {
        let rows = self.samples.get(number)?;
        let Row { stack, labels, .. } = self.rows[rows.start as usize];
        Some(Sample { stack, labels, values: self.sum(rows.start as usize..rows.end as usize) })
    }

    /// For each stack with labels the numbers of its rows, also if their sums are all 0.
    pub fn rows_of_samples(&self) -> impl Iterator<Item = Range<usize>> {
        let mut end = 0;
        self.rows.chunk_by(|a, b| (a.stack, a.labels) == (b.stack, b.labels)).map(move |same| {
            end += same.len();
            end - same.len()..end
        })
    }

    /// All samples.
    pub fn samples(&self) -> impl Iterator<Item = Sample> {
        (0..self.samples.len()).filter_map(|number| self.sample(number))
    }

    /// The locations of a stack, innermost first.
    pub fn locations(&self, stack: u32) -> impl Iterator<Item = u32> {
        let mut next = stack;
        std::iter::from_fn(move || {
            if next == EMPTY_STACK {
                return None;
            }
            let frame = self.tables.stacks[next as usize];
            next = frame.caller;
            Some(frame.location)
        })
    }

    /// The profile with only the rows that `keep` accepts.
    pub fn select(&self, keep: impl Fn(Row) -> bool, interrupt: &Interrupt) -> Result<Self, Interrupted> {
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        for (number, &row) in self.rows.iter().enumerate() {
            interrupt.at(number)?;
            if keep(row) {
                rows.push(row);
                values.extend_from_slice(self.values(number));
            }
        }
        let content = SortedRows::find_samples(rows, values, self.header.sample_types.len(), interrupt)?;
        let part = Self::new(Arc::clone(&self.header), Arc::clone(&self.tables), content);
        Ok(Self { header: self.header_of_part(&part), ..part })
    }

    /// Bytes held, approximately. Shared tables count for each profile.
    pub fn bytes(&self) -> usize {
        let Tables { strings, mappings, functions, locations, stacks, label_sets, .. } = &*self.tables;
        let strings: usize = strings.iter().map(|text| text.len() + 2 * size_of::<Arc<str>>()).sum();
        let labels: usize = label_sets.iter().map(|set| size_of_val(&**set) + 2 * size_of::<Arc<[Label]>>()).sum();
        let lines: usize = locations.iter().map(|location| size_of_val(&*location.lines)).sum();
        strings
            + labels
            + lines
            + size_of_val(&**mappings)
            + size_of_val(&**functions)
            + size_of_val(&**locations)
            + size_of_val(&**stacks)
            + size_of_val(&*self.rows)
            + size_of_val(&*self.values)
            + size_of_val(&*self.samples)
    }
}
