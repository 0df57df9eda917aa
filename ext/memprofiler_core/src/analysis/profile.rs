//! A profile in memory.

use super::records::{EMPTY_STACK, Header, Label, Row, Sample, Tables};
use std::ops::Range;
use std::sync::Arc;

/// A profile. It never changes; what is made from it shares its tables.
#[derive(Debug, Clone)]
pub struct Profile {
    header: Arc<Header>,
    tables: Arc<Tables>,
    /// Sorted; each is there once, and has a value that is not 0.
    rows: Vec<Row>,
    /// One per row and sample type.
    values: Vec<i64>,
    /// The rows of each sample. Samples whose values are all 0, as those of a difference may be, are left out.
    samples: Vec<Range<u32>>,
}

impl Profile {
    /// Puts a profile together from rows in any order. The values of equal ones are added.
    pub fn new(header: Arc<Header>, tables: Arc<Tables>, rows: &[Row], values: &[i64]) -> Self {
        let width = header.sample_types.len();
        let order = in_order(rows, tables.stacks.len());
        let (mut sorted, mut sums) = (Vec::with_capacity(rows.len()), Vec::with_capacity(values.len()));
        for equal in order.chunk_by(|&a, &b| rows[a as usize] == rows[b as usize]) {
            let start = sums.len();
            sums.resize(start + width, 0);
            for &row in equal {
                add(&mut sums[start..], &values[row as usize * width..][..width]);
            }
            if is_zero(&sums[start..]) {
                sums.truncate(start);
            } else {
                sorted.push(rows[equal[0] as usize]);
            }
        }
        let mut profile = Self { header, tables, rows: sorted, values: sums, samples: Vec::new() };
        profile.samples = profile.find_samples();
        profile
    }

    fn find_samples(&self) -> Vec<Range<u32>> {
        let mut samples = Vec::with_capacity(self.rows.len());
        let mut start = 0;
        for rows in self.rows.chunk_by(|a, b| (a.stack, a.labels) == (b.stack, b.labels)) {
            let range = start..start + rows.len() as u32;
            start = range.end;
            // A row alone has a value.
            if rows.len() == 1 || !is_zero(&self.sum(&range)) {
                samples.push(range);
            }
        }
        samples
    }

    fn sum(&self, rows: &Range<u32>) -> Vec<i64> {
        let width = self.header.sample_types.len();
        let mut sum = vec![0_i64; width];
        for row in rows.start as usize..rows.end as usize {
            add(&mut sum, self.values(row));
        }
        sum
    }

    /// What it says about itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What its samples refer to, and maybe more.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Whether it is a difference of two, whose values can be negative.
    pub fn is_difference(&self) -> bool {
        self.tables.schemes.iter().any(|scheme| scheme.base)
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
        Some(Sample { stack, labels, values: self.sum(rows) })
    }

    /// All samples.
    pub fn samples(&self) -> impl Iterator<Item = Sample> {
        (0..self.samples.len()).filter_map(|number| self.sample(number))
    }

    /// The locations of a stack, the innermost first.
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

    /// The profile with only the rows for which `keep` is true.
    pub fn select(&self, keep: impl Fn(Row) -> bool) -> Self {
        let mut selected = Self {
            header: Arc::clone(&self.header),
            tables: Arc::clone(&self.tables),
            rows: Vec::new(),
            values: Vec::new(),
            samples: Vec::new(),
        };
        for (number, &row) in self.rows.iter().enumerate().filter(|&(_, &row)| keep(row)) {
            selected.rows.push(row);
            selected.values.extend_from_slice(self.values(number));
        }
        selected.samples = selected.find_samples();
        selected
    }

    /// Bytes held, about. Tables that are shared count for each profile.
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

/// The numbers of the rows, sorted by row and then by number. There are so many stacks that few rows have the same.
fn in_order(rows: &[Row], stacks: usize) -> Vec<u32> {
    // A counting sort.
    let mut ends = vec![0_u32; stacks];
    rows.iter().for_each(|row| ends[row.stack as usize] += 1);
    let mut end = 0;
    for count in &mut ends {
        end += *count;
        *count = end;
    }
    let mut order = vec![0_u32; rows.len()];
    for (number, row) in rows.iter().enumerate().rev() {
        let end = &mut ends[row.stack as usize];
        *end -= 1;
        order[*end as usize] = number as u32;
    }
    for same_stack in order.chunk_by_mut(|&a, &b| rows[a as usize].stack == rows[b as usize].stack) {
        same_stack.sort_by_key(|&number| rows[number as usize]);
    }
    order
}

/// Adds values to as many sums. What overflows stays at the greatest number.
pub fn add(sums: &mut [i64], values: &[i64]) {
    for (sum, &value) in sums.iter_mut().zip(values) {
        *sum = sum.saturating_add(value);
    }
}

fn is_zero(values: &[i64]) -> bool {
    values.iter().all(|&value| value == 0)
}
