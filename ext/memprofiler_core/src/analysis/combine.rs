//! Sums and differences of profiles.

use super::builder::Builder;
use super::estimate::Scheme;
use super::profile::Profile;
use super::records::{EMPTY_STACK, Header, Row, ValueType};
use super::row_sums::RowSums;
use super::translation::{Numbers, Used};
use std::fmt::Display;
use std::sync::Arc;

/// Why two profiles cannot be combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incompatible {
    /// Which of the others it is, from 0.
    pub index: usize,
    reason: String,
}

impl Display for Incompatible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Incompatible {}

/// The sum of profiles: of several processes, or of one at several times. Values of equal samples are added, and so are
/// durations; the time is the earliest, and comments are those of all.
pub struct Merger {
    sum: Combination,
    header: Header,
    /// How many there are beside the first.
    others: usize,
}

impl Merger {
    /// The first one alone.
    pub fn new(first: &Profile) -> Self {
        let mut sum = Combination::new();
        sum.add(first, &identity(first), 1);
        Self { sum, header: first.header().clone(), others: 0 }
    }

    /// Adds another one.
    pub fn add(&mut self, other: &Profile) -> Result<(), Incompatible> {
        let columns = columns(&self.header, other.header(), self.others)?;
        self.sum.add(other, &columns, 1);
        merge_header(&mut self.header, other.header());
        self.others += 1;
        Ok(())
    }

    /// The sum.
    pub fn finish(self) -> Profile {
        self.sum.finish(self.header)
    }
}

/// The sum of several profiles, see [`Merger`].
pub fn merge(first: &Profile, others: &[&Profile]) -> Result<Profile, Incompatible> {
    let mut merger = Merger::new(first);
    others.iter().try_for_each(|other| merger.add(other))?;
    Ok(merger.finish())
}

/// What `profile` has more, or less, than `base`. Time and duration are those of `profile`. That both may rest on the
/// same samples is not known, so that errors are taken as independent: what is given is their upper bound.
pub fn diff(profile: &Profile, base: &Profile) -> Result<Profile, Incompatible> {
    let columns = columns(profile.header(), base.header(), 0)?;
    let mut difference = Combination::new();
    difference.add(profile, &identity(profile), 1);
    difference.add(base, &columns, -1);
    let mut header = profile.header().clone();
    add_comments(&mut header, base.header());
    Ok(difference.finish(header))
}

impl PartialEq for Profile {
    /// Whether both say the same of themselves and have the same samples, whatever the order.
    fn eq(&self, other: &Self) -> bool {
        if self.header() != other.header() || self.sample_count() != other.sample_count() {
            return false;
        }
        let mut builder = Builder::new();
        let mut normalized = |profile: &Profile| {
            let mut numbers = Numbers::default();
            numbers.translate(&mut builder, profile);
            let mut samples: Vec<_> = profile
                .samples()
                .map(|sample| {
                    (numbers.stacks[sample.stack as usize], numbers.label_sets[sample.labels as usize], sample.values)
                })
                .collect();
            samples.sort_unstable();
            (samples, numbers.mappings)
        };
        normalized(self) == normalized(other)
    }
}

fn identity(profile: &Profile) -> Vec<usize> {
    (0..profile.header().sample_types.len()).collect()
}

/// For each column of `wanted` that of `header` with the same type.
pub fn columns(wanted: &Header, header: &Header, index: usize) -> Result<Vec<usize>, Incompatible> {
    let refuse = |reason| Err(Incompatible { index, reason });
    let list = |types: &[ValueType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (left, right) = (&wanted.sample_types, &header.sample_types);
    let columns: Option<Vec<usize>> =
        left.iter().map(|each| right.iter().position(|candidate| candidate == each)).collect();
    match columns {
        Some(columns) if left.len() == right.len() => {
            if wanted.period_type != header.period_type {
                let name = |header: &Header| header.period_type.as_ref().map_or("none".into(), ToString::to_string);
                return refuse(format!("its period is in {}, not in {}", name(header), name(wanted)));
            }
            Ok(columns)
        }
        _ => refuse(format!("its sample types are {}, not {}", list(right), list(left))),
    }
}

fn merge_header(header: &mut Header, other: &Header) {
    header.time_nanos = match (header.time_nanos, other.time_nanos) {
        (0, time) | (time, 0) => time,
        (a, b) => a.min(b),
    };
    header.duration_nanos = header.duration_nanos.saturating_add(other.duration_nanos);
    header.period = header.period.max(other.period);
    add_comments(header, other);
    for (text, of_other) in [
        (&mut header.default_sample_type, &other.default_sample_type),
        (&mut header.drop_frames, &other.drop_frames),
        (&mut header.keep_frames, &other.keep_frames),
        (&mut header.doc_url, &other.doc_url),
    ] {
        if text.is_empty() {
            text.clone_from(of_other);
        }
    }
}

fn add_comments(header: &mut Header, other: &Header) {
    for comment in &other.comments {
        if !header.comments.contains(comment) {
            header.comments.push(Arc::clone(comment));
        }
    }
}

/// Rows of several profiles.
struct Combination {
    builder: Builder,
    rows: RowSums,
}

impl Combination {
    fn new() -> Self {
        Self { builder: Builder::new(), rows: RowSums::default() }
    }

    /// Adds all rows of a profile, `sign` times. `columns` tells where to find each of the sum's columns.
    fn add(&mut self, profile: &Profile, columns: &[usize], sign: i64) {
        let mut numbers = Numbers::default();
        numbers.translate(&mut self.builder, profile);
        let schemes = profile.tables().schemes.iter();
        let schemes: Vec<u32> =
            schemes.map(|&scheme| self.builder.scheme(Scheme { base: scheme.base ^ (sign < 0), ..scheme })).collect();
        let mut signed = Vec::with_capacity(columns.len());
        for (number, row) in profile.rows().iter().enumerate() {
            let row = Row {
                stack: numbers.stacks[row.stack as usize],
                labels: numbers.label_sets[row.labels as usize],
                scheme: schemes[row.scheme as usize],
            };
            let values = profile.values(number);
            signed.clear();
            signed.extend(columns.iter().map(|&column| values[column].saturating_mul(sign)));
            self.rows.add(row, &signed);
        }
    }

    fn finish(self, header: Header) -> Profile {
        self.builder.finish(header, self.rows.rows(), self.rows.sums())
    }
}

impl Profile {
    /// The profile without the frames at other locations than those for which `keep` is true. Stacks that have no such
    /// frame stay whole.
    pub(super) fn only_locations(&self, keep: &[bool]) -> Self {
        let mut builder = Builder::new();
        let mut numbers = Numbers::default();
        numbers.translate(&mut builder, self);
        let tables = self.tables();
        let mut stacks = vec![EMPTY_STACK; tables.stacks.len()];
        let used = Used::of(self);
        for (number, frame) in tables.stacks.iter().enumerate().skip(1).filter(|&(number, _)| used.stacks[number]) {
            let caller = stacks[frame.caller as usize];
            let location = frame.location as usize;
            stacks[number] = if keep[location] { builder.extend(caller, numbers.locations[location]) } else { caller };
        }
        tables.schemes.iter().for_each(|&scheme| {
            builder.scheme(scheme);
        });
        let rows: Vec<Row> = self
            .rows()
            .iter()
            .map(|row| {
                let shortened = stacks[row.stack as usize];
                let stack = if shortened == EMPTY_STACK { numbers.stacks[row.stack as usize] } else { shortened };
                Row { stack, labels: numbers.label_sets[row.labels as usize], scheme: row.scheme }
            })
            .collect();
        builder.finish(self.header().clone(), &rows, self.all_values())
    }
}
