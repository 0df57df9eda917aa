//! The JSON's parts.

use super::forest::{Flat, Forest, add_up};
use crate::analysis::estimate::{Estimator, Sum};
use crate::analysis::gem;
use crate::analysis::grouping::Group;
use crate::interrupt::{Interrupt, Interrupted};
use crate::table::Table;
use crate::window_group::{WindowGroup, pack};
use serde::Serialize;
use std::sync::Arc;

#[derive(Serialize)]
pub(super) struct Graph<'a> {
    pub strings: Vec<&'a str>,
    pub frames: Frames,
    pub nodes: Nodes,
    pub values: Vec<Vec<Values>>,
}

#[derive(Serialize)]
pub(super) struct Frames {
    pub name: Vec<u32>,
    pub file: Vec<u32>,
    pub line: Vec<i64>,
    pub gem: Vec<u32>,
}

#[derive(Serialize)]
pub(super) struct Nodes {
    pub parent: Vec<u32>,
    pub frame: Vec<u32>,
    pub kind: Vec<u32>,
}

#[derive(Serialize)]
pub(super) struct Values {
    pub node: Vec<u32>,
    pub value: Vec<i64>,
    pub variance: Vec<f64>,
    pub samples: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<Windows>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticks: Option<f64>,
}

#[derive(Serialize)]
pub(super) struct Windows {
    pub value: Vec<f64>,
    pub packed: Vec<String>,
}

impl Frames {
    /// Those that are shown.
    pub fn new(forest: &Forest, shown: &[u32], strings: &mut Table<Arc<str>>) -> Self {
        let frames: Vec<&Group> = shown.iter().map(|&frame| &forest.frames.values()[frame as usize]).collect();
        let mut optional = |text: Option<&Arc<str>>| text.map_or(0, |text| strings.id(text));
        let gem = |frame: &Group| frame.file.as_ref().map(|file| Arc::from(gem::of(file)));
        Self {
            name: frames.iter().map(|frame| optional(Some(&frame.name))).collect(),
            file: frames.iter().map(|frame| optional(frame.file.as_ref())).collect(),
            line: shown.iter().map(|&frame| forest.lines[frame as usize].unwrap_or_default()).collect(),
            gem: frames.iter().map(|frame| optional(gem(frame).as_ref())).collect(),
        }
    }
}

impl Values {
    /// A column's, each at the node that shows it according to `targets`.
    pub fn new(
        flat: &Flat,
        targets: &[u32],
        estimator: &Estimator,
        interrupt: &Interrupt,
    ) -> Result<Self, Interrupted> {
        let numbers = (0..).zip(flat).map(|(number, &(node, _))| (targets[node as usize], number)).collect();
        let shown = add_up(numbers, |number| flat[number as usize].1.clone(), interrupt)?;
        let known = estimator.knows_error();
        let ticks = estimator.all_ticks().filter(|_| known);
        let errors = |of: fn(&Sum) -> f64| shown.iter().filter(|_| known).map(move |(_, sum)| of(sum));
        let samples = errors(|sum| sum.samples);
        let in_windows = known && shown.iter().any(|(_, sum)| sum.windows.is_some());
        Ok(Self {
            node: shown.iter().map(|&(node, _)| node).collect(),
            value: shown.iter().map(|(_, sum)| sum.value).collect(),
            variance: errors(|sum| sum.independent_variance).map(rounded).collect(),
            samples: if ticks.is_some() { samples.collect() } else { samples.map(rounded).collect() },
            windows: in_windows.then(|| Windows::new(&shown)),
            ticks,
        })
    }
}

impl Windows {
    fn new(sums: &Flat) -> Self {
        let sums = sums.iter().map(|(_, sum)| sum.windows.as_deref().map_or([0.0; WindowGroup::COUNT], |sums| *sums));
        let (value, packed) = sums.map(|sums| (rounded(sums.iter().sum()), format!("{:x}", pack(&sums)))).unzip();
        Self { value, packed }
    }
}

/// An estimated error does not deserve more than four digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
