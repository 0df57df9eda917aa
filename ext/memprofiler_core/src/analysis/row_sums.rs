//! Rows whose values are added up.

use super::profile::add;
use super::records::Row;
use crate::hash::SecretState;
use crate::table::Table;

/// How far from where it is expected a row is looked for before it is looked up: rows of one stack lie together, in the
/// order in which a profile names their labels first.
const WINDOW: usize = 4;

/// Rows, each there once, with their sums.
#[derive(Default)]
pub struct RowSums {
    rows: Table<Row, SecretState>,
    sums: Vec<i64>,
    /// The row after that which was found last: see [`StackTable::extend_near`](super::stack_table::StackTable).
    guess: usize,
}

impl RowSums {
    /// Adds the values of a row, of which all rows have as many.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn row(stack: u32) -> Row {
        Row { stack, labels: 0, scheme: 0 }
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
