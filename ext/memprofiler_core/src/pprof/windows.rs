//! Which windows the objects of a sample were sampled in.
//!
//! In memory, what was sampled in windows is a row for each group of windows. In a file, which other programs read,
//! too, these rows are one sample with their sums, and labels tell how much of them is from each group. A label is for
//! a column of counts and for the bytes after it. Its key is the column's name with `_windows`, such as
//! `retained_objects_windows`, and its value a number without a unit, see [`pack`].
//!
//! A sample without such a label was not taken in windows. Where a stack has objects of both kinds, the file has two
//! samples, as it has where the orders of magnitude of their sizes differ, and for the two sides of a difference.
//! Labels of other programs are left alone: the labels have this meaning only in profiles that say what a sample stands
//! for, and a text, a number with a unit, or 0 is a label like any other.
//!
//! A label of a few bytes makes 16 rows, each with a value per column. So profiles with more columns than
//! [`MOST_COLUMNS`], which the gem does not write, cannot have such labels.

use crate::profile::{Builder, Header, Label, LabelValue, Profile, Scheme, Weighting, apportion};
use crate::window_group::{WindowGroup, pack, unpack};
use std::ops::Range;

/// This gem's profiles have four.
const MOST_COLUMNS: usize = 8;

/// Columns that are split in the same proportions.
#[derive(Debug)]
struct Columns {
    key: String,
    count: usize,
    bytes: Option<usize>,
}

/// The key of the label for a column of counts with that name.
pub fn windows_key(column: &str) -> String {
    format!("{column}_windows")
}

impl Columns {
    /// Those of a profile with that header. If several have the same name, the first.
    fn of(header: &Header) -> Vec<Self> {
        let types = &header.sample_types;
        let counts = (0..types.len()).filter(|&column| {
            let is_first = types[..column].iter().all(|before| before.name != types[column].name);
            is_first && header.count_column(column) == Some(column)
        });
        let columns = counts.map(|count| Self {
            key: windows_key(&types[count].name),
            count,
            bytes: Some(count + 1).filter(|&next| header.count_column(next) == Some(count)),
        });
        let can_be_split = types.len() <= MOST_COLUMNS && matches!(Weighting::of(header), Weighting::Each(_));
        if can_be_split { columns.collect() } else { Vec::new() }
    }

    fn indices(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.count).chain(self.bytes)
    }
}

/// Reads the labels of one sample after another.
#[derive(Debug)]
pub struct WindowsReader {
    width: usize,
    /// With the numbers of the keys.
    columns: Vec<(u32, Columns)>,
    /// What the labels of this sample say, by index into `columns`.
    packed: Vec<(usize, i64)>,
    /// The values of each group, one row after another.
    rows: Vec<i64>,
}

impl WindowsReader {
    /// For profiles with that header, whose strings are in the builder.
    pub fn new(header: &Header, builder: &Builder) -> Self {
        let columns = Columns::of(header).into_iter();
        let columns = columns.filter_map(|columns| Some((builder.find_string(&columns.key)?, columns))).collect();
        Self { width: header.sample_types.len(), columns, packed: Vec::new(), rows: Vec::new() }
    }

    /// Starts another sample.
    pub fn clear(&mut self) {
        self.packed.clear();
    }

    /// Takes a label that tells windows; returns false for any other.
    pub fn take(&mut self, label: Label) -> bool {
        let Label { key, value: LabelValue::Number(packed @ ..=-1 | packed @ 1.., 0) } = label else { return false };
        let found = self.columns.iter().position(|&(number, _)| number == key);
        self.packed.extend(found.map(|index| (index, packed)));
        found.is_some()
    }

    /// Moves what was taken in windows from the values of the sample, which begin at `start`, to their end, by group.
    /// Passes on the groups that have any.
    pub fn split(&mut self, values: &mut Vec<i64>, start: usize, mut add: impl FnMut(WindowGroup)) {
        if self.packed.is_empty() {
            return;
        }
        self.rows.clear();
        self.rows.resize(self.width * WindowGroup::COUNT, 0);
        for &(index, packed) in &self.packed {
            for column in self.columns[index].1.indices() {
                // If another label of that key was before this one, nothing is left.
                let total = std::mem::take(&mut values[start + column]);
                for (group, part) in apportion(total, &unpack(packed)).into_iter().enumerate() {
                    self.rows[group * self.width + column] += part;
                }
            }
        }
        for (group, row) in WindowGroup::all().zip(self.rows.chunks_exact(self.width)) {
            if row.iter().any(|&value| value != 0) {
                values.extend_from_slice(row);
                add(group);
            }
        }
    }
}

/// Makes the samples that are written.
#[derive(Debug)]
pub struct WindowsWriter<'a> {
    profile: &'a Profile,
    columns: Vec<Columns>,
    /// Whether a part is of the base of a difference, and whether it was taken in windows.
    kinds: Vec<(bool, bool)>,
}

impl<'a> WindowsWriter<'a> {
    /// For the samples of that profile.
    pub fn new(profile: &'a Profile) -> Self {
        let mut kinds: Vec<_> = profile.tables().schemes.iter().map(kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        Self { profile, columns: Columns::of(profile.header()), kinds }
    }

    /// The samples to write for one sample, of which the rows are given: by order of magnitude, and in each what was
    /// not taken in windows and what was. In a difference, what was subtracted comes after that.
    pub fn parts(&self, rows: Range<usize>) -> impl Iterator<Item = Part<'_>> {
        let mut end = rows.start;
        self.profile.rows()[rows].chunk_by(|a, b| a.magnitude == b.magnitude).flat_map(move |alike| {
            let rows = end..end + alike.len();
            end = rows.end;
            self.kinds.iter().filter_map(move |&kind| self.part(rows.clone(), kind))
        })
    }

    fn part(&self, rows: Range<usize>, of_kind: (bool, bool)) -> Option<Part<'_>> {
        let rows = rows.filter(|&row| kind(&self.profile.scheme(row)) == of_kind);
        let values = self.profile.sum(rows.clone());
        let (is_base, in_windows) = of_kind;
        let windows = || if in_windows { self.labels(rows) } else { Vec::new() };
        values.iter().any(|&value| value != 0).then(|| Part { windows: windows(), is_base, values })
    }

    fn labels(&self, rows: impl Iterator<Item = usize> + Clone) -> Vec<(&str, i64)> {
        let packed = self.columns.iter().map(|columns| {
            let mut parts = [0.0; WindowGroup::COUNT];
            for row in rows.clone() {
                let group = self.profile.scheme(row).window.map_or(0, WindowGroup::number);
                parts[group] += self.profile.values(row)[columns.count] as f64;
            }
            (&*columns.key, pack(&parts.map(f64::abs)))
        });
        packed.filter(|&(_, packed)| packed != 0).collect()
    }
}

fn kind(scheme: &Scheme) -> (bool, bool) {
    (scheme.base, scheme.window.is_some())
}

/// A sample to write.
#[derive(Debug)]
pub struct Part<'a> {
    /// One per sample type, not all 0.
    pub values: Vec<i64>,
    /// Keys and numbers of the labels that tell windows.
    pub windows: Vec<(&'a str, i64)>,
    /// Whether it is part of the base of a difference.
    pub is_base: bool,
}
