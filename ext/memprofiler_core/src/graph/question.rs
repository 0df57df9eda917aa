//! What is asked of a graph.

use crate::window_group::WindowGroup;
use std::sync::Arc;

/// One sampled live object.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Its address.
    pub address: u64,
    /// The index of the site that allocated it.
    pub site: u32,
    /// The name of its class, as in profiles, if that was recorded.
    pub class: Option<Arc<str>>,
    /// How many objects it stands for.
    pub weight: f64,
    /// Its own bytes.
    pub bytes: u64,
    /// The group of the windows that it was sampled in, if it was sampled in windows.
    pub window: Option<WindowGroup>,
}

impl Sample {
    /// The bytes of the objects that it stands for.
    pub(super) fn weighted_bytes(&self) -> f64 {
        self.weight * self.bytes as f64
    }
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
    /// How many of the objects that keep the most memory alive are reported at most.
    pub largest: usize,
    /// The program's directory, with a slash at its end, which phrases leave out of the names of files; or empty.
    pub directory: String,
}

impl Default for Question {
    fn default() -> Self {
        Self { limit: 10, largest: 5, directory: String::new() }
    }
}
