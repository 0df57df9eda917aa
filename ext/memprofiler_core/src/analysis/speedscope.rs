//! speedscope's own format: <https://www.speedscope.app/file-format-schema.json>.

use super::grouping::{address_name, function_name};
use super::json::{self, List};
use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::{EMPTY_STACK, Lazy, Profile, Sample, Used};
use serde::Serialize;
use std::fmt::{Display, Formatter};
use std::ops::Range;
use std::sync::Arc;

/// Why a profile cannot be written for speedscope.
#[derive(Debug)]
pub enum SpeedscopeError {
    /// It has negative values, as differences do; speedscope cannot show them.
    NegativeValue,
    /// It was interrupted.
    Interrupted(Interrupted),
}

impl Display for SpeedscopeError {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NegativeValue => f.write_str("speedscope cannot show negative values, which differences have"),
            Self::Interrupted(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SpeedscopeError {}

impl From<Interrupted> for SpeedscopeError {
    fn from(error: Interrupted) -> Self {
        Self::Interrupted(error)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a, P> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'a str,
    name: &'a str,
    active_profile_index: usize,
    shared: Shared<'a>,
    profiles: Vec<P>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: &'a [Frame<'a>],
}

#[derive(Serialize)]
struct Frame<'a> {
    name: Arc<str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<i64>,
}

/// One column: the frames of each sample, outermost first, and its value.
#[derive(Serialize)]
#[serde(tag = "type", rename = "sampled", rename_all = "camelCase")]
struct Column<'a, S, W> {
    name: &'a str,
    unit: &'a str,
    start_value: i64,
    end_value: i64,
    samples: S,
    weights: W,
}

/// All columns as JSON, each as a separate profile.
pub fn speedscope(
    profile: &Profile,
    name: &str,
    exporter: &str,
    interrupt: &Interrupt,
) -> Result<String, SpeedscopeError> {
    let header = profile.header();
    let mut samples: Vec<Sample> = Vec::with_capacity(profile.sample_count());
    let mut totals = vec![0_i64; header.sample_types.len()];
    for (number, sample) in profile.samples().enumerate() {
        interrupt.at(number)?;
        if sample.values.iter().any(|&value| value < 0) {
            return Err(SpeedscopeError::NegativeValue);
        }
        totals.iter_mut().zip(&sample.values).for_each(|(total, &value)| *total = total.saturating_add(value));
        samples.push(sample);
    }
    let stacks = &Stacks::new(profile, interrupt)?;
    let samples = &samples;
    let columns = header.sample_types.iter().zip(totals).enumerate().map(|(column, (value_type, end_value))| {
        let shown = move || samples.iter().filter(move |sample| sample.values[column] > 0);
        Column {
            name: &value_type.name,
            unit: unit(&value_type.unit),
            start_value: 0,
            end_value,
            samples: List(move || shown().map(|sample| stacks.frames(sample.stack, interrupt))),
            weights: List(move || shown().map(move |sample| sample.values[column])),
        }
    });
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter,
        name,
        active_profile_index: header.default_column().unwrap_or_default(),
        shared: Shared { frames: &stacks.frames },
        profiles: columns.collect(),
    };
    Ok(json::to_string(&file, interrupt)?)
}

/// speedscope's name for a unit.
fn unit(unit: &str) -> &str {
    match unit {
        "bytes" | "nanoseconds" | "microseconds" | "milliseconds" | "seconds" => unit,
        _ => "none",
    }
}

/// The frames of a profile, and which of them make up its stacks.
struct Stacks<'a> {
    profile: &'a Profile,
    frames: Vec<Frame<'a>>,
    /// For each location, a range in `members`.
    locations: Vec<Range<usize>>,
    /// Frames, the innermost of a location first.
    members: Vec<u32>,
    no_stack: u32,
}

impl<'a> Stacks<'a> {
    fn new(profile: &'a Profile, interrupt: &Interrupt) -> Result<Self, Interrupted> {
        let tables = profile.tables();
        let used = Used::of(profile, interrupt)?;
        let mut stacks = Self {
            profile,
            frames: Vec::new(),
            locations: vec![0..0; tables.locations.len()],
            members: Vec::new(),
            no_stack: 0,
        };
        let mut functions = Lazy::new(tables.functions.len());
        for (number, frame) in tables.stacks.iter().enumerate().skip(1) {
            interrupt.at(number)?;
            let at = frame.location as usize;
            if !used.stacks[number] || !stacks.locations[at].is_empty() {
                continue;
            }
            let (location, start) = (&tables.locations[at], stacks.members.len());
            if location.lines.is_empty() {
                let frame = stacks.add(Frame { name: address_name(profile, location), file: "", line: None });
                stacks.members.push(frame);
            }
            for (step, line) in (1..).zip(&*location.lines) {
                interrupt.at(step)?;
                let frame = functions.get(line.function, || stacks.add_function(line.function));
                stacks.members.push(frame);
            }
            stacks.locations[at] = start..stacks.members.len();
        }
        if profile.rows().iter().any(|row| row.stack == EMPTY_STACK) {
            stacks.no_stack = stacks.add(Frame { name: "(no stack)".into(), file: "", line: None });
        }
        Ok(stacks)
    }

    fn add_function(&mut self, number: u32) -> u32 {
        let tables = self.profile.tables();
        let function = tables.functions[number as usize];
        let line = Some(function.start_line).filter(|&line| line > 0);
        let name = Arc::clone(function_name(self.profile, number));
        self.add(Frame { name, file: &tables.strings[function.file as usize], line })
    }

    fn add(&mut self, frame: Frame<'a>) -> u32 {
        self.frames.push(frame);
        self.frames.len() as u32 - 1
    }

    /// The numbers of a stack's frames, outermost first; incomplete after an interrupt, which the writer notices, too.
    fn frames(&self, stack: u32, interrupt: &Interrupt) -> Vec<u32> {
        if stack == EMPTY_STACK {
            return vec![self.no_stack];
        }
        let locations = (1..).zip(self.profile.locations(stack)).take_while(|&(step, _)| interrupt.at(step).is_ok());
        let mut frames: Vec<u32> = Vec::new();
        locations.for_each(|(_, location)| {
            frames.extend_from_slice(&self.members[self.locations[location as usize].clone()]);
        });
        frames.reverse();
        frames
    }
}
