//! The data of a flame graph: one tree for any number of profiles, as JSON.
//!
//! ```text
//! {"strings": [text, …],
//!  "frames":  {"name": [string, …], "file": [string, …], "line": [line or 0, …], "gem": [string, …]},
//!  "nodes":   {"parent": [node, …], "frame": [frame, …], "kind": [0..3, …]},
//!  "values":  one per profile: [one per column: {"node": [node, …], "value": […], "variance": […], "samples": […],
//!                               "windows": {"value": […], "packed": [digits, …]}, "ticks": number}]}
//! ```
//!
//! String 0 is empty and stands for unknown. Node 0 is the root; parents come before their children. Values are a
//! node's own, without its children; nodes that are not listed have none. Variance and samples are empty if unknown.
//! The variance is that of what was not sampled in windows. Of the rest there is the value, and in which proportions
//! the groups of windows have it: for each group a hexadecimal digit, that of group 0 the last. There is no "windows"
//! if nothing was sampled in windows. "ticks", N in [`Estimator::variance`], is only there if samples are ticks: a
//! sum's variance is to be multiplied by 1 - samples/N. The numbers of samples are then not rounded.

use super::estimate::{Estimator, Sum};
use super::gem;
use super::grouping::{By, Group, Grouping};
use super::json;
use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::{CombineError, PrefixTree, Profile, ROOT, add_to_parents, columns, sort_by_number};
use crate::table::Table;
use crate::window_group::{WindowGroup, pack};
use serde::Serialize;
use std::num::Saturating;
use std::sync::Arc;

#[derive(Serialize)]
struct Graph<'a> {
    strings: Vec<&'a str>,
    frames: Frames,
    nodes: Nodes,
    values: Vec<Vec<Values>>,
}

#[derive(Serialize)]
struct Frames {
    name: Vec<u32>,
    file: Vec<u32>,
    line: Vec<i64>,
    gem: Vec<u32>,
}

#[derive(Serialize)]
struct Nodes {
    parent: Vec<u32>,
    frame: Vec<u32>,
    kind: Vec<u32>,
}

#[derive(Serialize)]
struct Values {
    node: Vec<u32>,
    value: Vec<i64>,
    variance: Vec<f64>,
    samples: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    windows: Option<Windows>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticks: Option<f64>,
}

#[derive(Serialize)]
struct Windows {
    value: Vec<f64>,
    packed: Vec<String>,
}

/// The kind of a node: `kind` in the JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Frame = 0,
    /// The class of the objects, below the innermost frame.
    Class = 1,
    /// Frames too small to show.
    OtherFrames = 2,
    /// Classes too small to show.
    OtherClasses = 3,
}

/// The frame and kind of a node, which identify it among its siblings.
type Item = (u32, Kind);

/// A node: its parent and its item.
type Node = (u32, Item);

/// The first frame, which has no name. The root has it, and so do the nodes that stand for what was too small.
const NO_FRAME: u32 = 0;

/// The call tree of all profiles, with the values of all columns of the first one. Shows only nodes with at least
/// `min_fraction` of the total in any profile and column; the rest is summed in nodes of its own.
pub fn flamegraph(
    profiles: &[&Profile],
    by: By,
    min_fraction: f64,
    interrupt: &Interrupt,
) -> Result<String, CombineError> {
    let Some((first, others)) = profiles.split_first() else { return Ok("null".into()) };
    let mut orders = vec![(0..first.header().sample_types.len()).collect()];
    for (index, other) in others.iter().enumerate() {
        orders.push(columns(first.header(), other.header(), index)?);
    }
    let mut forest = Forest::new();
    let mut sums: Vec<Vec<Flat>> = Vec::new();
    for (profile, order) in profiles.iter().zip(&orders) {
        sums.push(forest.add(profile, order, by, interrupt)?);
    }
    let (targets, nodes) = fold_small(forest.nodes.nodes(), &sums, min_fraction, interrupt)?;
    let mut strings = Table::default();
    strings.id(&Arc::from(""));
    let mut shown: Table<u32> = Table::default();
    shown.id(&NO_FRAME);
    let nodes = Nodes {
        parent: nodes.iter().map(|&(parent, _)| parent).collect(),
        frame: nodes.iter().map(|&(_, (frame, _))| shown.id(&frame)).collect(),
        kind: nodes.iter().map(|&(_, (_, kind))| kind as u32).collect(),
    };
    let frames = frames(&forest, shown.values(), &mut strings);
    let mut values = Vec::new();
    for ((profile, order), columns) in profiles.iter().zip(&orders).zip(&sums) {
        let of_profile = order
            .iter()
            .zip(columns)
            .map(|(&column, flat)| of_column(flat, &targets, &Estimator::new(profile, column), interrupt));
        values.push(of_profile.collect::<Result<_, _>>()?);
    }
    let strings = strings.values().iter().map(|text| &**text).collect();
    Ok(json::to_string(&Graph { strings, frames, nodes, values }, interrupt)?)
}

/// The sums of one column of a profile by node, for nodes with samples of their own. Sorted by node.
type Flat = Vec<(u32, Sum)>;

/// The nodes of all profiles.
struct Forest {
    frames: Table<Group>,
    /// For each frame.
    lines: Vec<Option<i64>>,
    nodes: PrefixTree<Item>,
}

impl Forest {
    fn new() -> Self {
        let nodes = PrefixTree::new((NO_FRAME, Kind::Frame));
        let mut forest = Self { frames: Table::default(), lines: Vec::new(), nodes };
        forest.frame(&Group::named("".into()), By::Method);
        forest
    }

    fn add(
        &mut self,
        profile: &Profile,
        order: &[usize],
        by: By,
        interrupt: &Interrupt,
    ) -> Result<Vec<Flat>, Interrupted> {
        let mut grouping = Grouping::new(profile, by, interrupt)?;
        let stacks = &profile.tables().stacks;
        let classes: Vec<Option<u32>> = (0..profile.tables().label_sets.len())
            .map(|labels| grouping.class(labels as u32).map(|name| self.frame(&Group::named(name), By::Class)))
            .collect();
        let no_stack = grouping.of_no_stack();
        let frames: Vec<u32> = grouping.groups().iter().map(|group| self.frame(group, by)).collect();
        let mut of_stack = vec![ROOT; stacks.len()];
        for (stack, frame) in stacks.iter().enumerate().skip(1) {
            interrupt.at(stack)?;
            of_stack[stack] = grouping
                .of_location(frame.location)
                .iter()
                .rev()
                .fold(of_stack[frame.caller as usize], |node, &group| {
                    self.nodes.child(node, (frames[group as usize], Kind::Frame))
                });
        }
        let mut of_row = Vec::with_capacity(profile.rows().len());
        for (number, row) in profile.rows().iter().enumerate() {
            interrupt.at(number)?;
            let node = match of_stack[row.stack as usize] {
                ROOT => self.nodes.child(ROOT, (frames[no_stack as usize], Kind::Frame)),
                node => node,
            };
            of_row
                .push(classes[row.labels as usize].map_or(node, |class| self.nodes.child(node, (class, Kind::Class))));
        }
        order.iter().map(|&column| flat(profile, column, &of_row, interrupt)).collect()
    }

    /// Different profiles can find different functions in the same line first, as can a method with several blocks, all
    /// of which have its name. It is one frame nevertheless.
    fn frame(&mut self, group: &Group, by: By) -> u32 {
        let line = group.line.filter(|_| by != By::Method);
        let frame = self.frames.id(&Group { line, function: None, ..group.clone() });
        match self.lines.get_mut(frame as usize) {
            Some(known) => *known = known.iter().chain(&group.line).copied().min(),
            None => self.lines.push(group.line),
        }
        frame
    }
}

fn flat(profile: &Profile, column: usize, of_row: &[u32], interrupt: &Interrupt) -> Result<Flat, Interrupted> {
    let estimator = Estimator::new(profile, column);
    let rows = (0_u32..).zip(of_row).filter(|&(row, _)| profile.values(row as usize)[column] != 0);
    add_up(rows.map(|(row, &node)| (node, row)).collect(), |row| estimator.row(row as usize), interrupt)
}

/// Adds up numbered sums by node.
fn add_up(mut numbers: Vec<(u32, u32)>, sum: impl Fn(u32) -> Sum, interrupt: &Interrupt) -> Result<Flat, Interrupted> {
    sort_by_number(&mut numbers, |&(node, _)| node, interrupt)?;
    let mut flat = Flat::new();
    for (step, &(node, number)) in numbers.iter().enumerate() {
        interrupt.at(step)?;
        match flat.last_mut() {
            Some((last, total)) if *last == node => *total += &sum(number),
            _ => flat.push((node, sum(number))),
        }
    }
    Ok(flat)
}

/// For each node with values the node that shows them, and which nodes are shown.
fn fold_small(
    nodes: &[Node],
    sums: &[Vec<Flat>],
    min_fraction: f64,
    interrupt: &Interrupt,
) -> Result<(Vec<u32>, Vec<Node>), Interrupted> {
    let mut present = vec![false; nodes.len()];
    let mut great = vec![false; nodes.len()];
    let mut cumulative = vec![Saturating(0_i64); nodes.len()];
    for flat in sums.iter().flatten() {
        cumulative.fill(Saturating(0));
        flat.iter().for_each(|(node, sum)| cumulative[*node as usize].0 = sum.value);
        add_to_parents(&mut cumulative, |node| nodes[node].0, interrupt)?;
        let least = min_fraction * cumulative[0].0.unsigned_abs() as f64;
        for (node, &Saturating(value)) in cumulative.iter().enumerate().filter(|(_, value)| value.0 != 0) {
            present[node] = true;
            great[node] |= value.unsigned_abs() as f64 >= least;
        }
    }
    let mut shown: PrefixTree<Item> = PrefixTree::new(nodes[0].1);
    let mut targets = vec![ROOT; nodes.len()];
    for (number, &(parent, (frame, kind))) in nodes.iter().enumerate().skip(1) {
        interrupt.at(number)?;
        let parent = targets[parent as usize];
        let other = if kind == Kind::Class { Kind::OtherClasses } else { Kind::OtherFrames };
        targets[number] = match shown.nodes()[parent as usize].1.1 {
            Kind::OtherFrames => parent,
            // Such as stacks of samples that were filtered out.
            _ if !present[number] => parent,
            _ if great[number] => shown.child(parent, (frame, kind)),
            _ => shown.child(parent, (NO_FRAME, other)),
        };
    }
    Ok((targets, shown.into_nodes()))
}

fn frames(forest: &Forest, shown: &[u32], strings: &mut Table<Arc<str>>) -> Frames {
    let frames: Vec<&Group> = shown.iter().map(|&frame| &forest.frames.values()[frame as usize]).collect();
    let mut optional = |text: Option<&Arc<str>>| text.map_or(0, |text| strings.id(text));
    let gem = |frame: &Group| frame.file.as_ref().map(|file| Arc::from(gem::of(file)));
    Frames {
        name: frames.iter().map(|frame| optional(Some(&frame.name))).collect(),
        file: frames.iter().map(|frame| optional(frame.file.as_ref())).collect(),
        line: shown.iter().map(|&frame| forest.lines[frame as usize].unwrap_or_default()).collect(),
        gem: frames.iter().map(|frame| optional(gem(frame).as_ref())).collect(),
    }
}

fn of_column(
    flat: &Flat,
    targets: &[u32],
    estimator: &Estimator,
    interrupt: &Interrupt,
) -> Result<Values, Interrupted> {
    let numbers = (0..).zip(flat).map(|(number, &(node, _))| (targets[node as usize], number)).collect();
    let shown = add_up(numbers, |number| flat[number as usize].1.clone(), interrupt)?;
    let known = estimator.knows_error();
    let ticks = estimator.all_ticks().filter(|_| known);
    let errors = |of: fn(&Sum) -> f64| shown.iter().filter(|_| known).map(move |(_, sum)| of(sum));
    let samples = errors(|sum| sum.samples);
    let in_windows = known && shown.iter().any(|(_, sum)| sum.windows.is_some());
    Ok(Values {
        node: shown.iter().map(|&(node, _)| node).collect(),
        value: shown.iter().map(|(_, sum)| sum.value).collect(),
        variance: errors(|sum| sum.independent_variance).map(rounded).collect(),
        samples: if ticks.is_some() { samples.collect() } else { samples.map(rounded).collect() },
        windows: in_windows.then(|| Windows::new(&shown)),
        ticks,
    })
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
