//! The rows of a profile: summed as they arrive, sorted at the end.

use super::Row;
use super::sort::sort_by_number;
use crate::interrupt::{Interrupt, Interrupted};
use crate::table::Table;
use std::ops::Range;

/// How far from its expected place to search for a row before looking it up. The rows of a stack are adjacent, in the
/// order in which a profile first names their labels.
const WINDOW: usize = 4;

/// Distinct rows with their sums.
#[derive(Default)]
pub struct RowSums {
    rows: Table<Row>,
    sums: Vec<i64>,
    /// The row after the one found last: see [`PrefixTree::child_near`](super::prefix_tree::PrefixTree).
    guess: usize,
}

impl RowSums {
    /// Adds the values of a row. All rows have the same number of values.
    pub fn add(&mut self, row: Row, values: &[i64]) {
        let start = self.number(row) * values.len();
        match self.sums.get_mut(start..start + values.len()) {
            Some(sums) => add(sums, values),
            None => self.sums.extend_from_slice(values),
        }
    }

    fn number(&mut self, row: Row) -> usize {
        let rows = self.rows.values();
        let (known, near) = (rows.len(), self.guess.saturating_sub(WINDOW)..self.guess.saturating_add(WINDOW));
        let near = near.start.min(known)..near.end.min(known);
        let found = rows[near.clone()].iter().position(|each| each == &row);
        let number = found.map_or_else(|| self.rows.id(&row) as usize, |position| near.start + position);
        if number < known {
            self.guess = number + 1;
        }
        number
    }

    /// The rows.
    pub fn rows(&self) -> &[Row] {
        self.rows.values()
    }

    /// The sums of all rows.
    pub fn sums(&self) -> &[i64] {
        &self.sums
    }
}

/// The rows of a profile with their values, and which of them make up one sample.
pub struct SortedRows {
    pub rows: Vec<Row>,
    pub values: Vec<i64>,
    pub samples: Vec<Range<u32>>,
}

impl SortedRows {
    /// Sorts rows that refer to `stacks` stacks and have `width` values each. Adds up the values of equal rows.
    pub fn new(
        rows: &[Row],
        values: &[i64],
        width: usize,
        stacks: usize,
        interrupt: &Interrupt,
    ) -> Result<Self, Interrupted> {
        let order = in_order(rows, stacks, interrupt)?;
        let (mut sorted, mut sums) = (Vec::with_capacity(rows.len()), Vec::with_capacity(values.len()));
        for (step, equal) in order.chunk_by(|&a, &b| rows[a as usize] == rows[b as usize]).enumerate() {
            interrupt.at(step)?;
            let start = sums.len();
            sums.resize(start + width, 0);
            for (step, &row) in (1..).zip(equal) {
                interrupt.at(step)?;
                add(&mut sums[start..], &values[row as usize * width..][..width]);
            }
            if is_zero(&sums[start..]) {
                sums.truncate(start);
            } else {
                sorted.push(rows[equal[0] as usize]);
            }
        }
        Self::find_samples(sorted, sums, width, interrupt)
    }

    pub(super) fn find_samples(
        rows: Vec<Row>,
        values: Vec<i64>,
        width: usize,
        interrupt: &Interrupt,
    ) -> Result<Self, Interrupted> {
        let mut samples = Vec::with_capacity(rows.len());
        let mut start = 0;
        for (step, same) in rows.chunk_by(|a, b| (a.stack, a.labels) == (b.stack, b.labels)).enumerate() {
            interrupt.at(step)?;
            let range = start..start + same.len() as u32;
            start = range.end;
            // A single row has a value other than 0.
            let numbers = range.start as usize..range.end as usize;
            if same.len() == 1 || !is_zero(&sum(&values, width, numbers)) {
                samples.push(range);
            }
        }
        Ok(Self { rows, values, samples })
    }
}

/// The sums of the values of some rows.
pub fn sum(values: &[i64], width: usize, rows: impl Iterator<Item = usize>) -> Vec<i64> {
    let mut sum = vec![0_i64; width];
    rows.for_each(|row| add(&mut sum, &values[row * width..][..width]));
    sum
}

/// The numbers of the rows, sorted by row and then by number. There are so many stacks that few rows share one.
fn in_order(rows: &[Row], stacks: usize, interrupt: &Interrupt) -> Result<Vec<u32>, Interrupted> {
    // A counting sort.
    let mut ends = vec![0_u32; stacks];
    for (step, row) in rows.iter().enumerate() {
        interrupt.at(step)?;
        ends[row.stack as usize] += 1;
    }
    let mut end = 0;
    for count in &mut ends {
        end += *count;
        *count = end;
    }
    let mut order = vec![0_u32; rows.len()];
    for (number, row) in rows.iter().enumerate().rev() {
        interrupt.at(number)?;
        let end = &mut ends[row.stack as usize];
        *end -= 1;
        order[*end as usize] = number as u32;
    }
    for (step, same) in order.chunk_by_mut(|&a, &b| rows[a as usize].stack == rows[b as usize].stack).enumerate() {
        interrupt.at(step)?;
        if same.len() > 1 {
            sort_by_number(same, |&number| rows[number as usize].scheme, interrupt)?;
            sort_by_number(same, |&number| rows[number as usize].magnitude, interrupt)?;
            sort_by_number(same, |&number| rows[number as usize].labels, interrupt)?;
        }
    }
    Ok(order)
}

/// Adds values to the same number of sums, saturating.
fn add(sums: &mut [i64], values: &[i64]) {
    for (sum, &value) in sums.iter_mut().zip(values) {
        *sum = sum.saturating_add(value);
    }
}

fn is_zero(values: &[i64]) -> bool {
    values.iter().all(|&value| value == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(stack: u32) -> Row {
        Row::new(stack, 0, 0)
    }

    #[test]
    fn equal_rows_are_added_whatever_their_order() {
        let mut sums = RowSums::default();
        for stacks in [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [9, 8, 7, 6, 5, 4, 3, 2, 1, 0], [5, 0, 6, 1, 7, 2, 8, 3, 9, 4]] {
            stacks.iter().for_each(|&stack| sums.add(row(stack), &[1, stack.into()]));
        }
        assert_eq!(sums.rows(), (0..10).map(row).collect::<Vec<_>>());
        assert_eq!(sums.sums(), (0..10).flat_map(|stack| [3, 3 * stack]).collect::<Vec<_>>());
    }
}
