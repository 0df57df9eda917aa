//! How much a profile becomes when all that it says once is told wherever it is referred to.
//!
//! A location can stand for any number of inlined functions, and be in any number of stacks; a name of any length can
//! be that of any number of frames. So a few kilobytes could become gigabytes of frames or of text, in trees, graphs
//! and other formats. No operation makes more than is measured here: frames of the stacks of all samples, and bytes of
//! what all that can be told is called. Sums and differences of profiles become no more than these together.
//!
//! A call takes at least a byte of a profile, so that its size is what to compare with.

use super::DecodeError;
use crate::interrupt::Interrupt;
use crate::profile::{Label, LabelValue, Location, Profile};
use std::fmt::{Display, Formatter};

/// How many frames a profile may become for each of its bytes: more functions than are ever inlined into one another,
/// on average. And how many in any case.
const FRAMES_PER_BYTE: u64 = 16;
const FRAMES: u64 = 1 << 17;

/// How many bytes of text a profile may become for each of its bytes: longer names than there ever are, on average. And
/// how many in any case.
const TEXT_PER_BYTE: u64 = 1024;
const TEXT: u64 = 1 << 24;

/// What a line number or address takes as text.
const NUMBER: u64 = 20;

/// A profile becomes more than it may.
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
        write!(f, "its {bytes} bytes stand for {size} {what}, the most allowed for a profile of that size is {most}")
    }
}

/// Fails if `profile`, which had `bytes` bytes, becomes more than it may.
pub fn check(profile: &Profile, bytes: u64, interrupt: &Interrupt) -> Result<(), DecodeError> {
    let tables = profile.tables();
    let refuse = |what, size, most| {
        if size <= most { Ok(()) } else { Err(DecodeError::Expands(Excess { what, size, most, bytes })) }
    };
    let lines = |location: &Location| location.lines.len().max(1) as u64;
    // As there are no more calls than bytes, most profiles need not be measured.
    if tables.locations.iter().any(|location| lines(location) > FRAMES_PER_BYTE) {
        let frames = of_stacks(profile, lines, interrupt)?;
        refuse("frames with inlined functions", frames, FRAMES.saturating_add(FRAMES_PER_BYTE.saturating_mul(bytes)))?;
    }
    let text = Text(profile);
    let longest = text.entries().max().unwrap_or_default();
    if longest > TEXT_PER_BYTE {
        let labels = profile.samples().map(|sample| text.labels(&tables.label_sets[sample.labels as usize]));
        let of_samples = of_stacks(profile, |location| text.location(location), interrupt)?;
        let size = text.entries().chain(labels).fold(of_samples, u64::saturating_add);
        refuse("bytes of names", size, TEXT.saturating_add(TEXT_PER_BYTE.saturating_mul(bytes)))?;
    }
    Ok(())
}

/// The sum over all frames of all samples.
fn of_stacks(profile: &Profile, size: impl Fn(&Location) -> u64, interrupt: &Interrupt) -> Result<u64, DecodeError> {
    let tables = profile.tables();
    let sizes: Vec<u64> = tables.locations.iter().map(size).collect();
    let mut of_stack = vec![0_u64; tables.stacks.len()];
    for (stack, frame) in tables.stacks.iter().enumerate().skip(1) {
        interrupt.at(stack)?;
        of_stack[stack] = of_stack[frame.caller as usize].saturating_add(sizes[frame.location as usize]);
    }
    let mut sum = 0_u64;
    for (number, sample) in profile.samples().enumerate() {
        interrupt.at(number)?;
        sum = sum.saturating_add(of_stack[sample.stack as usize]);
    }
    Ok(sum)
}

/// How many bytes of text there are wherever names are told.
struct Text<'a>(&'a Profile);

impl Text<'_> {
    fn string(&self, number: u32) -> u64 {
        self.0.tables().strings[number as usize].len() as u64
    }

    /// Of each entry of each table, and of what the header lists.
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
