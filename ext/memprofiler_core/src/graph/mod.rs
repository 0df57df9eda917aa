//! Who holds an object: the reference graph of a heap, and what it says.

mod answer;
mod builder;
mod describe;
mod kind;

pub use answer::{Answer, Class, Estimate, Holder, Link, Path, PathFrame, Site, Unreachable};
pub use builder::Builder;
pub use describe::{Describe, Edge, NodeName};
pub use kind::{Kind, NodeId};

use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::Profile;
use crate::window_group::WindowGroup;
use std::sync::Arc;

/// The objects of a heap and the references between them.
#[derive(Debug)]
pub struct Graph {}

impl Graph {
    /// The number of nodes: the root, its categories, and the objects.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        1
    }

    /// The number of edges.
    pub fn edges(&self) -> usize {
        0
    }

    /// What a node refers to.
    pub fn out(&self, _node: NodeId) -> &[NodeId] {
        &[]
    }

    /// The node of the object at an address.
    pub fn node(&self, _address: u64) -> Option<NodeId> {
        None
    }

    /// The address of a node's object; 0 of the root and its categories.
    pub fn address(&self, _node: NodeId) -> u64 {
        0
    }

    /// The kind of a node.
    pub fn kind(&self, _node: NodeId) -> Kind {
        Kind::Root
    }

    /// The bytes of a node's object.
    pub fn bytes(&self, _node: NodeId) -> u64 {
        0
    }

    /// The class of a node's object, if it has one and that is in the graph.
    pub fn class(&self, _node: NodeId) -> Option<NodeId> {
        None
    }

    /// The name of a category of roots.
    pub fn category(&self, _node: NodeId) -> Option<&'static str> {
        None
    }
}

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
