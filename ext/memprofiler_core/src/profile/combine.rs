//! Sums and differences of profiles.

use super::headers::{
    Comments, Incompatible, columns, merge_header, parts, set_parts, set_ticks_left_out, ticks_left_out,
};
use super::renumber::{Numbers, Used};
use super::rows::RowSums;
use super::{Builder, EMPTY_STACK, Header, Magnitudes, Profile, Row, Scheme, sort_by_number};
use crate::interrupt::{Interrupt, Interrupted};
use std::fmt::Display;

/// Why there is no sum or difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CombineError {
    /// The profiles do not match.
    Incompatible(Incompatible),
    /// It was interrupted.
    Interrupted(Interrupted),
}

impl Display for CombineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Incompatible(error) => error.fmt(f),
            Self::Interrupted(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CombineError {}

impl From<Incompatible> for CombineError {
    fn from(error: Incompatible) -> Self {
        Self::Incompatible(error)
    }
}

impl From<Interrupted> for CombineError {
    fn from(error: Interrupted) -> Self {
        Self::Interrupted(error)
    }
}

/// Adds up profiles: those of several processes, or of one process at several times. Adds the values of equal samples,
/// and the durations; keeps the earliest time and everybody's comments, and says how many there were.
pub struct Merger {
    sum: Combination,
    header: Header,
    comments: Comments,
    /// Of how many profiles it is the sum, where those are sums, too.
    parts: u64,
    /// How many ticks they leave out.
    ticks_left_out: u64,
    /// How many profiles there are besides the first.
    others: usize,
}

impl Merger {
    /// Starts with the first profile.
    pub fn new(first: &Profile, interrupt: &Interrupt) -> Result<Self, Interrupted> {
        let mut sum = Combination::new(first.header());
        sum.add(first, &identity(first), 1, interrupt)?;
        let comments = Comments::of(first.header(), interrupt)?;
        let header = first.header().clone();
        let (parts, ticks_left_out) = (parts(&header), ticks_left_out(&header));
        Ok(Self { sum, header, comments, parts, ticks_left_out, others: 0 })
    }

    /// Adds another profile. After an interruption, add the same one again: it resumes where it was.
    pub fn add(&mut self, other: &Profile, interrupt: &Interrupt) -> Result<(), CombineError> {
        let columns = columns(&self.header, other.header(), self.others)?;
        self.comments.add_to(&mut self.header, other.header(), interrupt)?;
        self.sum.add(other, &columns, 1, interrupt)?;
        merge_header(&mut self.header, other.header());
        self.parts = self.parts.saturating_add(parts(other.header()));
        self.ticks_left_out = self.ticks_left_out.saturating_add(ticks_left_out(other.header()));
        self.others += 1;
        Ok(())
    }

    /// The sum. After an interruption everything is still there; otherwise nothing is left.
    pub fn finish(&mut self, interrupt: &Interrupt) -> Result<Profile, Interrupted> {
        if self.others > 0 {
            set_parts(&mut self.header, self.parts);
            set_ticks_left_out(&mut self.header, self.ticks_left_out);
        }
        self.sum.finish(&self.header, interrupt)
    }
}

/// The sum of several profiles, see [`Merger`].
pub fn merge(first: &Profile, others: &[&Profile], interrupt: &Interrupt) -> Result<Profile, CombineError> {
    let mut merger = Merger::new(first, interrupt)?;
    others.iter().try_for_each(|other| merger.add(other, interrupt))?;
    Ok(merger.finish(interrupt)?)
}

/// What `profile` has in addition to `base`, or lacks. Time and duration are those of `profile`. Whether the two share
/// samples is unknown, so errors are treated as independent: the result is an upper bound.
pub fn diff(profile: &Profile, base: &Profile, interrupt: &Interrupt) -> Result<Profile, CombineError> {
    let columns = columns(profile.header(), base.header(), 0)?;
    let mut difference = Combination::new(profile.header());
    difference.add(profile, &identity(profile), 1, interrupt)?;
    difference.add(base, &columns, -1, interrupt)?;
    let mut header = profile.header().clone();
    Comments::of(profile.header(), interrupt)?.add_to(&mut header, base.header(), interrupt)?;
    let left_out = ticks_left_out(profile.header()).saturating_add(ticks_left_out(base.header()));
    set_ticks_left_out(&mut header, left_out);
    Ok(difference.finish(&header, interrupt)?)
}

/// Whether both have the same header and the same samples, in whatever order.
pub fn equal(profile: &Profile, other: &Profile, interrupt: &Interrupt) -> Result<bool, Interrupted> {
    if profile.header() != other.header() || profile.sample_count() != other.sample_count() {
        return Ok(false);
    }
    let mut builder = Builder::new();
    // Samples as (stack, labels, number). Within a profile no two have the same stack and labels.
    let mut normalized = |profile: &Profile| {
        let mut numbers = Numbers::default();
        numbers.translate(&mut builder, profile, interrupt)?;
        let mut samples = Vec::with_capacity(profile.sample_count());
        for (number, sample) in profile.samples().enumerate() {
            interrupt.at(number)?;
            let (stack, labels) = (sample.stack as usize, sample.labels as usize);
            samples.push((numbers.stacks[stack], numbers.label_sets[labels], number));
        }
        sort_by_number(&mut samples, |sample| sample.1, interrupt)?;
        sort_by_number(&mut samples, |sample| sample.0, interrupt)?;
        Ok((samples, numbers.mappings))
    };
    let ((ours, our_mappings), (theirs, their_mappings)) = (normalized(profile)?, normalized(other)?);
    for (step, (our, their)) in ours.into_iter().zip(theirs).enumerate() {
        interrupt.at(step)?;
        let values = |profile: &Profile, number| profile.sample(number).map(|sample| sample.values);
        if (our.0, our.1) != (their.0, their.1) || values(profile, our.2) != values(other, their.2) {
            return Ok(false);
        }
    }
    Ok(our_mappings == their_mappings)
}

impl PartialEq for Profile {
    fn eq(&self, other: &Self) -> bool {
        // An interrupt that never happens.
        equal(self, other, &Interrupt::default()) == Ok(true)
    }
}

fn identity(profile: &Profile) -> Vec<usize> {
    (0..profile.header().sample_types.len()).collect()
}

/// Rows of several profiles.
struct Combination {
    builder: Builder,
    rows: RowSums,
    magnitudes: Magnitudes,
    /// How many rows were already added of a profile whose addition was interrupted.
    added: usize,
}

impl Combination {
    /// Nothing yet, for profiles with that header.
    fn new(header: &Header) -> Self {
        let magnitudes = Magnitudes::of(header);
        Self { builder: Builder::new(), rows: RowSums::default(), magnitudes, added: 0 }
    }

    /// Adds all rows of a profile, multiplied by `sign`. `columns` says where to find each column of the sum.
    fn add(
        &mut self,
        profile: &Profile,
        columns: &[usize],
        sign: i64,
        interrupt: &Interrupt,
    ) -> Result<(), Interrupted> {
        let mut numbers = Numbers::default();
        numbers.translate(&mut self.builder, profile, interrupt)?;
        let schemes = profile.tables().schemes.iter();
        let schemes: Vec<u32> =
            schemes.map(|&scheme| self.builder.scheme(Scheme { base: scheme.base ^ (sign < 0), ..scheme })).collect();
        let mut signed = Vec::with_capacity(columns.len());
        for (number, row) in profile.rows().iter().enumerate().skip(self.added) {
            // The next call resumes here.
            self.added = number;
            interrupt.at(number)?;
            let values = profile.values(number);
            signed.clear();
            signed.extend(columns.iter().map(|&column| values[column].saturating_mul(sign)));
            let row = Row {
                stack: numbers.stacks[row.stack as usize],
                labels: numbers.label_sets[row.labels as usize],
                scheme: schemes[row.scheme as usize],
                magnitude: self.magnitudes.of_row(profile.scheme(number), &signed),
            };
            self.rows.add(row, &signed);
        }
        self.added = 0;
        Ok(())
    }

    fn finish(&mut self, header: &Header, interrupt: &Interrupt) -> Result<Profile, Interrupted> {
        let profile = self.builder.finish(header, self.rows.rows(), self.rows.sums(), interrupt)?;
        self.rows = RowSums::default();
        Ok(profile)
    }
}

impl Profile {
    /// The profile without the frames at locations for which `keep` is false. Stacks that would lose all frames stay
    /// whole.
    pub(crate) fn only_locations(&self, keep: &[bool], interrupt: &Interrupt) -> Result<Self, Interrupted> {
        let mut builder = Builder::new();
        let mut numbers = Numbers::default();
        numbers.translate(&mut builder, self, interrupt)?;
        let tables = self.tables();
        let mut stacks = vec![EMPTY_STACK; tables.stacks.len()];
        let used = Used::of(self, interrupt)?;
        for (number, frame) in tables.stacks.iter().enumerate().skip(1) {
            interrupt.at(number)?;
            if !used.stacks[number] {
                continue;
            }
            let caller = stacks[frame.caller as usize];
            let location = frame.location as usize;
            stacks[number] = if keep[location] { builder.extend(caller, numbers.locations[location]) } else { caller };
        }
        tables.schemes.iter().for_each(|&scheme| {
            builder.scheme(scheme);
        });
        let magnitudes = Magnitudes::of(self.header());
        let mut rows = Vec::with_capacity(self.rows().len());
        for (number, row) in self.rows().iter().enumerate() {
            interrupt.at(number)?;
            let shortened = stacks[row.stack as usize];
            let stack = if shortened == EMPTY_STACK { numbers.stacks[row.stack as usize] } else { shortened };
            let (labels, scheme) = (numbers.label_sets[row.labels as usize], row.scheme);
            let magnitude = magnitudes.of_row(self.scheme(number), self.values(number));
            rows.push(Row { stack, labels, scheme, magnitude });
        }
        builder.finish(self.header(), &rows, self.all_values(), interrupt)
    }
}
