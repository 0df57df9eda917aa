//! speedscope's own format: <https://www.speedscope.app/file-format-schema.json>.

use super::grouping::{address_name, function_name};
use super::profile::Profile;
use super::records::{Location, Sample};
use crate::hash::SecretState;
use crate::table::Table;
use serde_json::{Value, json, to_string};
use std::fmt::{Display, Formatter};

/// Why a profile cannot be written for speedscope.
#[derive(Debug)]
pub enum SpeedscopeError {
    /// It has negative values, as differences have, which speedscope cannot show.
    NegativeValue,
    /// JSON could not be written.
    Json(serde_json::Error),
}

impl Display for SpeedscopeError {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NegativeValue => f.write_str("speedscope cannot show negative values, as differences have them"),
            Self::Json(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SpeedscopeError {}

impl From<serde_json::Error> for SpeedscopeError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

/// All columns as JSON, each as a profile of its own.
pub fn speedscope(profile: &Profile, name: &str, exporter: &str) -> Result<String, SpeedscopeError> {
    let samples: Vec<Sample> = profile.samples().collect();
    if samples.iter().flat_map(|sample| &sample.values).any(|&value| value < 0) {
        return Err(SpeedscopeError::NegativeValue);
    }
    let mut frames = Frames::new(profile);
    let stacks: Vec<Vec<u32>> = samples.iter().map(|sample| frames.of_stack(sample.stack)).collect();
    // Put together here: as a serde_json::Value the stacks would take ten times the memory.
    let mut profiles = Vec::new();
    for (column, value_type) in profile.header().sample_types.iter().enumerate() {
        let shown: Vec<usize> = (0..samples.len()).filter(|&number| samples[number].values[column] > 0).collect();
        let stacks: Vec<&[u32]> = shown.iter().map(|&number| &*stacks[number]).collect();
        let weights: Vec<i64> = shown.iter().map(|&number| samples[number].values[column]).collect();
        let total = weights.iter().fold(0_i64, |sum, &weight| sum.saturating_add(weight));
        profiles.push(format!(
            r#"{{"type":"sampled","name":{},"unit":{},"startValue":0,"endValue":{total},"samples":{},"weights":{}}}"#,
            to_string(&*value_type.name)?,
            to_string(unit(&value_type.unit))?,
            to_string(&stacks)?,
            to_string(&weights)?,
        ));
    }
    Ok(format!(
        r#"{{"$schema":{},"exporter":{},"name":{},"activeProfileIndex":{},"shared":{{"frames":{}}},"profiles":[{}]}}"#,
        to_string("https://www.speedscope.app/file-format-schema.json")?,
        to_string(exporter)?,
        to_string(name)?,
        profile.header().default_column().unwrap_or_default(),
        to_string(&frames.described)?,
        profiles.join(","),
    ))
}

/// The names that speedscope has for units.
fn unit(unit: &str) -> &str {
    match unit {
        "bytes" | "nanoseconds" | "microseconds" | "milliseconds" | "seconds" => unit,
        _ => "none",
    }
}

struct Frames<'a> {
    profile: &'a Profile,
    numbers: Table<Key, SecretState>,
    described: Vec<Value>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Function(u32),
    Address(u32),
    None,
}

impl<'a> Frames<'a> {
    fn new(profile: &'a Profile) -> Self {
        Self { profile, numbers: Table::default(), described: Vec::new() }
    }

    /// The numbers of a stack's frames, the outermost first.
    fn of_stack(&mut self, stack: u32) -> Vec<u32> {
        let profile = self.profile;
        let mut frames = Vec::new();
        for number in profile.locations(stack) {
            let location = &profile.tables().locations[number as usize];
            if location.lines.is_empty() {
                frames.push(self.number(Key::Address(number), location));
            }
            for line in &*location.lines {
                frames.push(self.number(Key::Function(line.function), location));
            }
        }
        if frames.is_empty() {
            let number = self.numbers.id(&Key::None);
            if number as usize == self.described.len() {
                self.described.push(json!({ "name": "(no stack)" }));
            }
            frames.push(number);
        }
        frames.reverse();
        frames
    }

    fn number(&mut self, key: Key, location: &Location) -> u32 {
        let number = self.numbers.id(&key);
        if number as usize == self.described.len() {
            self.described.push(match key {
                Key::Function(function) => self.describe(function),
                _ => json!({ "name": &*address_name(self.profile, location) }),
            });
        }
        number
    }

    fn describe(&self, number: u32) -> Value {
        let tables = self.profile.tables();
        let function = tables.functions[number as usize];
        let file = &*tables.strings[function.file as usize];
        let mut frame = json!({ "name": &**function_name(self.profile, number) });
        if !file.is_empty() {
            frame["file"] = file.into();
        }
        if function.start_line > 0 {
            frame["line"] = function.start_line.into();
        }
        frame
    }
}
