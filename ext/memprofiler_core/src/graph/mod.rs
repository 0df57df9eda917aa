//! Who holds an object: the reference graph of a heap, and what it says.

mod address_index;
mod answer;
mod bit_set;
mod builder;
mod describe;
mod dominators;
mod kind;
mod nodes;
mod search;
mod spanning_tree;

pub use answer::{Answer, Class, Estimate, Holder, Link, Path, PathFrame, Site, Unreachable};
pub use builder::Builder;
pub use describe::{Describe, Edge, NodeName};
pub use dominators::Dominators;
pub use kind::{Kind, NodeId};
pub use nodes::Graph;
pub use search::Search;

use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::Profile;
use crate::window_group::WindowGroup;
use std::sync::Arc;

/// One sampled live object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Its address.
    pub address: u64,
    /// The index of the site that allocated it.
    pub site: u32,
    /// How many objects it stands for.
    pub weight: f64,
    /// Its own bytes.
    pub bytes: u64,
    /// The group of the windows that it was sampled in, if it was sampled in windows.
    pub window: Option<WindowGroup>,
}

/// A line that allocated sampled objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteName {
    /// `FILE:LINE`, or the function if the line is not known.
    pub name: String,
    /// The file.
    pub file: Option<String>,
    /// The line.
    pub line: Option<i64>,
    /// The function that contains the line.
    pub function: Option<String>,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// How many sites are reported at most, those with the most bytes.
    pub limit: usize,
}

/// Who holds the sampled objects.
pub fn answer(
    _graph: &Graph,
    _samples: &[Sample],
    _sites: &[SiteName],
    _question: &Question,
    _describe: &mut impl Describe,
) -> Answer {
    Answer::default()
}

/// The paths of an answer as a profile: value types `retained_objects` and `retained_size`, labels `site` and `class`.
pub fn profile(
    _answer: &Answer,
    _time_nanos: i64,
    _comments: &[Arc<str>],
    _interrupt: &Interrupt,
) -> Result<Profile, Interrupted> {
    Err(Interrupted)
}
