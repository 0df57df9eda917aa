//! What the search found, in the form that leaves the process it was made in.

use super::{Edge, Kind};
use crate::window_group::WindowGroup;
use serde::{Deserialize, Serialize};

/// Who holds the sampled objects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// How many objects the roots reach.
    pub objects: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The references between them.
    pub edges: u64,
    /// How many sampled objects were asked for.
    pub samples: u64,
    /// The greatest weight of a sample.
    pub greatest_weight: f64,
    /// The sampled objects that no root reaches: garbage, or what only a finalizer keeps.
    pub unreachable: Unreachable,
    /// The sites with the most bytes, those first.
    pub sites: Vec<Site>,
    /// The objects that keep the most memory alive, whoever allocated it, those with the most first.
    pub largest: Vec<Largest>,
    /// The paths to all sampled objects; left out of JSON if there are none.
    #[serde(default, skip_serializing_if = "PathTree::is_empty")]
    pub paths: PathTree,
}

/// Sampled objects that no root reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Unreachable {
    /// How many were sampled.
    pub samples: u64,
    /// How many objects they stand for.
    pub objects: f64,
    /// The bytes of those.
    pub bytes: f64,
}

/// The objects that one line allocated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// `FILE:LINE`, or the function if the line is not known.
    pub name: String,
    /// The file.
    pub file: Option<String>,
    /// The line.
    pub line: Option<i64>,
    /// The function that contains the line.
    pub function: Option<String>,
    /// How many objects were sampled.
    pub samples: u64,
    /// How many objects live.
    pub objects: Estimate,
    /// Their bytes.
    pub bytes: Estimate,
    /// What they are: the classes with the most bytes, at most three.
    pub classes: Vec<Class>,
    /// The estimated bytes of those that no root reaches.
    pub unreachable_bytes: f64,
    /// Who holds them, those with the largest share first.
    pub holders: Vec<Holder>,
    /// How many others there are, with smaller shares, which are not told.
    pub other_holders: u64,
    /// The estimated bytes of what those hold.
    pub other_holders_bytes: f64,
}

/// An estimate from samples, with the fields of `MemprofilerPprof::Profile::Estimate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate.
    pub value: i64,
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// How many sampled objects it is based on.
    pub samples: f64,
    /// The square of the standard error.
    pub variance: f64,
    /// What was sampled in windows, by group of windows; None if nothing was.
    pub windows: Option<[f64; WindowGroup::COUNT]>,
}

/// A class of the objects of a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// The estimated bytes of its objects.
    pub bytes: f64,
}

/// What holds objects of a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Holder {
    /// The share of the site's bytes, from 0 to 1.
    pub share: f64,
    /// How many objects were sampled.
    pub samples: u64,
    /// The estimated number of the objects that it holds.
    pub objects: f64,
    /// Their estimated bytes.
    pub bytes: f64,
    /// Whether most of them live only through the chain. If not, other references hold them as well.
    pub exclusive: bool,
    /// If not, or if several paths lead from its end to them: some of the other references, on one line each.
    pub also: Vec<String>,
    /// How many chains say the same, such as those from several threads. The one of these with the most bytes is shown.
    pub alike: u64,
    /// The chain on one line.
    pub phrase: String,
    /// From where a programmer would begin to the point where the objects accumulate.
    pub chain: Vec<Link>,
    /// What the chain leaves out, such as `3 steps of activesupport`.
    pub folded: Option<String>,
    /// From below the end of the chain to one sampled object.
    pub example: Vec<Link>,
}

/// An object that keeps much memory alive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Largest {
    /// The bytes that would be freed with it; of a class or thread without those that other classes and objects have
    /// which are among the largest. Of all that are alike. Exact.
    pub bytes: u64,
    /// How many chains say the same, such as those to several threads. The one of these with the most bytes is shown.
    pub alike: u64,
    /// The chain on one line.
    pub phrase: String,
    /// From where a programmer would begin to the object.
    pub chain: Vec<Link>,
    /// What the chain leaves out, such as `3 steps of activesupport`.
    pub folded: Option<String>,
}

/// An object on a path, and how the one before refers to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// What the object is called.
    pub text: String,
    /// How the object before refers to it; None for the first one.
    pub edge: Option<Edge>,
    /// The edge and both of its ends, such as `ProductCardCache.@cards → Hash`.
    pub phrase: String,
    /// The number of entries of an Array or Hash.
    pub count: Option<u64>,
    /// The bytes that would be freed with it: its own and those of all that lives only through it. Exact.
    pub retained: u64,
    /// What it means to a search.
    pub kind: Kind,
    /// The file that defines it, or the constant that refers to it.
    pub file: Option<String>,
    /// The line in that file.
    pub line: Option<i64>,
}

/// Paths to sampled objects, which share their beginnings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathTree {
    /// The steps that paths consist of, each once.
    pub frames: Vec<PathFrame>,
    /// The nodes of the tree: the number of the node before, None where paths begin, and that of the frame. The node
    /// before has the smaller number.
    pub nodes: Vec<(Option<u32>, u32)>,
    /// The paths.
    pub paths: Vec<Path>,
}

impl PathTree {
    /// Whether there are no paths.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }
}

/// A path to sampled objects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// The name of the site that allocated them.
    pub site: String,
    /// Their class.
    pub class: String,
    /// The number of its last node; None if it has none.
    pub end: Option<u32>,
    /// How many objects were sampled.
    pub samples: u64,
    /// How many objects they stand for.
    pub objects: f64,
    /// The bytes of those.
    pub bytes: f64,
    /// The number of the group of windows that they were sampled in, if they were sampled in windows.
    pub window: Option<u8>,
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PathFrame {
    /// The phrase of the link.
    pub name: String,
    /// The file that defines the object or the constant; empty if unknown.
    pub file: String,
    /// The line; 0 if unknown.
    pub line: i64,
}
