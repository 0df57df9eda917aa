//! How large a profile becomes when everything that it stores once is written out at each reference.
//!
//! A location can stand for any number of inlined functions and be in any number of stacks; a name of any length can
//! belong to any number of frames. So a few kilobytes could expand to gigabytes of frames or text, in trees, graphs and
//! other formats. Two measures bound every operation: the frames in the stacks of all samples, and the bytes of all
//! names written out. Sums and differences of profiles expand to at most the sum of their parts.
//!
//! Every call takes at least one byte of a profile, so the bounds are relative to its size.

use super::DecodeError;
use crate::interrupt::Interrupt;
use crate::profile::{Label, LabelValue, Location, Profile, Row};
use std::fmt::{Display, Formatter};

/// How many frames a profile may expand to per byte: on average, more functions than are ever inlined into one another.
/// And how many are always allowed.
const FRAMES_PER_BYTE: u64 = 16;
const FRAMES: u64 = 1 << 17;

/// How many bytes of text a profile may expand to per byte: on average, longer names than occur in practice. And how
/// many are always allowed.
const TEXT_PER_BYTE: u64 = 1024;
const TEXT: u64 = 1 << 24;

/// The length of a line number or address as text.
const NUMBER: u64 = 20;

/// A profile that expands to more than is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excess {
    what: &'static str,
    size: u64,
    most: u64,
    bytes: u64,
}

impl Display for Excess {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { what, size, most, bytes } = self;
        write!(f, "its {bytes} bytes expand to {size} {what}, at most {most} are allowed for this size")
    }
}

/// Fails if `profile`, which was read from `bytes` bytes, expands to more than is allowed. `rows` are those of all its
/// samples: of some the profile may have no more than the stack, since their values are 0 or cancel out.
pub fn check(profile: &Profile, rows: &[Row], bytes: u64, interrupt: &Interrupt) -> Result<(), DecodeError> {
    let tables = profile.tables();
    let samples = || rows.chunk_by(|a, b| (a.stack, a.labels) == (b.stack, b.labels)).map(|same| same[0]);
    let refuse = |what, size, most| {
        if size <= most { Ok(()) } else { Err(DecodeError::Expands(Excess { what, size, most, bytes })) }
    };
    let lines = |location: &Location| location.lines.len().max(1) as u64;
    // There are no more calls than bytes, so most profiles need not be measured.
    if tables.locations.iter().any(|location| lines(location) > FRAMES_PER_BYTE) {
        let frames = of_stacks(profile, samples(), lines, interrupt)?;
        refuse("frames with inlined functions", frames, FRAMES.saturating_add(FRAMES_PER_BYTE.saturating_mul(bytes)))?;
    }
    let text = Text(profile);
    let longest = text.entries().max().unwrap_or_default();
    if longest > TEXT_PER_BYTE {
        let labels = samples().map(|sample| text.labels(&tables.label_sets[sample.labels as usize]));
        let of_samples = of_stacks(profile, samples(), |location| text.location(location), interrupt)?;
        let size = text.entries().chain(labels).fold(of_samples, u64::saturating_add);
        refuse("bytes of names", size, TEXT.saturating_add(TEXT_PER_BYTE.saturating_mul(bytes)))?;
    }
    Ok(())
}

/// The sum over all frames of all samples.
fn of_stacks(
    profile: &Profile,
    samples: impl Iterator<Item = Row>,
    size: impl Fn(&Location) -> u64,
    interrupt: &Interrupt,
) -> Result<u64, DecodeError> {
    let tables = profile.tables();
    let sizes: Vec<u64> = tables.locations.iter().map(size).collect();
    let mut of_stack = vec![0_u64; tables.stacks.len()];
    for (stack, frame) in tables.stacks.iter().enumerate().skip(1) {
        interrupt.at(stack)?;
        of_stack[stack] = of_stack[frame.caller as usize].saturating_add(sizes[frame.location as usize]);
    }
    let mut sum = 0_u64;
    for (number, sample) in samples.enumerate() {
        interrupt.at(number)?;
        sum = sum.saturating_add(of_stack[sample.stack as usize]);
    }
    Ok(sum)
}

/// How much text there is when names are written out wherever they are used.
struct Text<'a>(&'a Profile);

impl Text<'_> {
    fn string(&self, number: u32) -> u64 {
        self.0.tables().strings[number as usize].len() as u64
    }

    /// For each entry of each table, and for the lists in the header.
    fn entries(&self) -> impl Iterator<Item = u64> {
        let (tables, header) = (self.0.tables(), self.0.header());
        let functions = tables.functions.iter().map(|each| self.strings(&[each.name, each.system_name, each.file]));
        let mappings = tables.mappings.iter().map(|each| self.strings(&[each.file, each.build_id]));
        let locations = tables.locations.iter().map(|each| self.location(each));
        let label_sets = tables.label_sets.iter().map(|each| self.labels(each));
        let types = header.sample_types.iter().map(|each| (each.name.len() + each.unit.len()) as u64);
        let comments = header.comments.iter().map(|comment| comment.len() as u64);
        functions.chain(mappings).chain(locations).chain(label_sets).chain(types).chain(comments)
    }

    fn strings(&self, numbers: &[u32]) -> u64 {
        numbers.iter().map(|&number| self.string(number)).sum()
    }

    fn location(&self, location: &Location) -> u64 {
        let tables = self.0.tables();
        let mapping = |number: u32| self.string(tables.mappings[number as usize].file);
        let lines = location.lines.iter().map(|line| {
            let function = tables.functions[line.function as usize];
            NUMBER + self.strings(&[function.name, function.system_name, function.file])
        });
        if location.lines.is_empty() { NUMBER + location.mapping.map_or(0, mapping) } else { lines.sum() }
    }

    fn labels(&self, labels: &[Label]) -> u64 {
        let value = |value| match value {
            LabelValue::Text(text) => self.string(text),
            LabelValue::Number(_, unit) => NUMBER + self.string(unit),
        };
        labels.iter().map(|label| self.string(label.key) + value(label.value)).sum()
    }
}
