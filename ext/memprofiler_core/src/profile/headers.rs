//! Combining the headers of profiles.

use super::{Header, ValueType};
use crate::hash::SecretState;
use crate::interrupt::{Interrupt, Interrupted};
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::sync::Arc;

/// Why two profiles cannot be combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incompatible {
    /// The index of the offending profile among the others, from 0.
    pub index: usize,
    reason: String,
}

impl Display for Incompatible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Incompatible {}

/// For each column of `wanted`, the column of `header` with the same type. Where several have the same type, the first
/// matches the first, and so on.
pub fn columns(wanted: &Header, header: &Header, index: usize) -> Result<Vec<usize>, Incompatible> {
    let refuse = |reason| Err(Incompatible { index, reason });
    let list = |types: &[ValueType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (left, right) = (&wanted.sample_types, &header.sample_types);
    let mut positions: HashMap<&ValueType, Vec<usize>, SecretState> = HashMap::default();
    for (position, each) in right.iter().enumerate().rev() {
        positions.entry(each).or_default().push(position);
    }
    let columns: Option<Vec<usize>> = left.iter().map(|each| positions.get_mut(each)?.pop()).collect();
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

/// Merges another header into `header`.
pub fn merge_header(header: &mut Header, other: &Header) {
    header.time_nanos = match (header.time_nanos, other.time_nanos) {
        (0, time) | (time, 0) => time,
        (a, b) => a.min(b),
    };
    header.duration_nanos = header.duration_nanos.saturating_add(other.duration_nanos);
    header.period = header.period.max(other.period);
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

/// How the comment begins that says of how many profiles a profile is the sum.
const MERGED: &str = "merged=";

/// Of how many profiles the one with that header is the sum.
pub fn parts(header: &Header) -> u64 {
    let numbers = header.comments.iter().filter_map(|comment| comment.strip_prefix(MERGED)?.parse().ok());
    numbers.fold(0, u64::saturating_add).max(1)
}

/// Says in a header of how many profiles it is the sum, in place of what the parts say of themselves. The other comments
/// are those of any of them.
pub fn set_parts(header: &mut Header, parts: u64) {
    header.comments.retain(|comment| !comment.starts_with(MERGED));
    header.comments.push(format!("{MERGED}{parts}").into());
}

/// How the comment begins that says how many ticks a part of a profile leaves out.
const TICKS_LEFT_OUT: &str = "ticks_left_out=";

/// How many ticks the profile with that header leaves out of those that there were.
pub fn ticks_left_out(header: &Header) -> u64 {
    let numbers = header.comments.iter().filter_map(|comment| comment.strip_prefix(TICKS_LEFT_OUT)?.parse().ok());
    numbers.fold(0, u64::saturating_add)
}

/// Says in a header how many ticks it leaves out, in place of what it or its parts say.
pub fn set_ticks_left_out(header: &mut Header, ticks: u64) {
    header.comments.retain(|comment| !comment.starts_with(TICKS_LEFT_OUT));
    if ticks > 0 {
        header.comments.push(format!("{TICKS_LEFT_OUT}{ticks}").into());
    }
}

/// The comments that a header has.
pub struct Comments(HashSet<Arc<str>, SecretState>);

impl Comments {
    /// Those of `header`.
    pub fn of(header: &Header, interrupt: &Interrupt) -> Result<Self, Interrupted> {
        let mut known = HashSet::default();
        for (step, comment) in header.comments.iter().enumerate() {
            interrupt.at(step)?;
            known.insert(Arc::clone(comment));
        }
        Ok(Self(known))
    }

    /// Adds those comments of another header that are not there yet.
    pub fn add_to(&mut self, header: &mut Header, other: &Header, interrupt: &Interrupt) -> Result<(), Interrupted> {
        for (step, comment) in other.comments.iter().enumerate() {
            interrupt.at(step)?;
            if self.0.insert(Arc::clone(comment)) {
                header.comments.push(Arc::clone(comment));
            }
        }
        Ok(())
    }
}
