//! What a flame graph shows: one tree for any number of profiles, as JSON.
//!
//! ```text
//! {"strings": [text, …],
//!  "frames":  {"name": [string, …], "file": [string, …], "line": [line or 0, …], "gem": [string, …]},
//!  "nodes":   {"parent": [node, …], "frame": [frame, …], "kind": [0..3, …]},
//!  "values":  one per profile: [one per column: {"node": [node, …], "value": […], "variance": […], "samples": […]}]}
//! ```
//!
//! String 0 is empty, which is what is unknown. Node 0 is the root; a parent comes before its children. Values are those
//! of a node itself, without its children; nodes not named have none. Variance and samples are empty if not known.

use super::combine::{Incompatible, columns};
use super::estimate::{Estimator, Sum};
use super::gem;
use super::grouping::{By, Group, Grouping};
use super::profile::Profile;
use crate::hash::SecretState;
use crate::table::Table;
use serde_json::{Value, json};
use std::sync::Arc;

/// What a node is: the last field of its identity, and `kind` in the JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Frame = 0,
    /// The class of the objects, below the innermost frame.
    Class = 1,
    /// Frames too small to be shown.
    OtherFrames = 2,
    /// Classes too small to be shown.
    OtherClasses = 3,
}

/// Of a node: its parent, its frame and its kind.
type Node = (u32, u32, Kind);

/// The root stands for no frame, and so do the nodes for what was too small: they have the first one, without a name.
const NO_FRAME: u32 = 0;

/// The tree of calls of all profiles with the values of all columns, which are those of the first. Only nodes are shown
/// that have `min_fraction` of the total in any profile and column; the values of others are in nodes of their own.
pub fn flamegraph(profiles: &[&Profile], by: By, min_fraction: f64) -> Result<String, Incompatible> {
    let Some((first, others)) = profiles.split_first() else { return Ok("null".into()) };
    let mut orders = vec![(0..first.header().sample_types.len()).collect()];
    for (index, other) in others.iter().enumerate() {
        orders.push(columns(first.header(), other.header(), index)?);
    }
    let mut forest = Forest::new();
    let sums: Vec<Vec<Flat>> =
        profiles.iter().zip(&orders).map(|(profile, order)| forest.add(profile, order, by)).collect();
    let (targets, nodes) = fold_small(forest.nodes.values(), &sums, min_fraction);
    let mut strings = Table::default();
    strings.id(&Arc::from(""));
    let mut shown: Table<u32, SecretState> = Table::default();
    shown.id(&NO_FRAME);
    let frame_of_node: Vec<u32> = nodes.iter().map(|node| shown.id(&node.1)).collect();
    let frames = frames_json(&forest, shown.values(), &mut strings);
    let values: Vec<Value> = profiles
        .iter()
        .zip(&orders)
        .zip(&sums)
        .map(|((profile, order), columns)| {
            let known = order.iter().map(|&column| Estimator::new(profile, column).knows_error());
            columns.iter().zip(known).map(|(flat, known)| values_json(flat, &targets, known)).collect()
        })
        .collect();
    let nodes = json!({
        "parent": nodes.iter().map(|node| node.0).collect::<Vec<_>>(),
        "frame": frame_of_node,
        "kind": nodes.iter().map(|node| node.2 as u32).collect::<Vec<_>>(),
    });
    let strings: Vec<&str> = strings.values().iter().map(|text| &**text).collect();
    Ok(json!({ "strings": strings, "frames": frames, "nodes": nodes, "values": values }).to_string())
}

/// The sums of one column of a profile by node, for the nodes that have samples of their own. Sorted by node.
type Flat = Vec<(u32, Sum)>;

/// The nodes of all profiles.
struct Forest {
    frames: Table<Group, SecretState>,
    /// Of each frame.
    lines: Vec<Option<i64>>,
    nodes: Table<Node, SecretState>,
}

impl Forest {
    fn new() -> Self {
        let mut forest = Self { frames: Table::default(), lines: Vec::new(), nodes: Table::default() };
        forest.frame(&Group::named("".into()), By::Method);
        forest.nodes.id(&(0, NO_FRAME, Kind::Frame));
        forest
    }

    fn add(&mut self, profile: &Profile, order: &[usize], by: By) -> Vec<Flat> {
        let mut grouping = Grouping::new(profile, by);
        let stacks = &profile.tables().stacks;
        let classes: Vec<Option<u32>> = (0..profile.tables().label_sets.len())
            .map(|labels| grouping.class(labels as u32).map(|name| self.frame(&Group::named(name), By::Class)))
            .collect();
        let no_stack = grouping.of_no_stack();
        let frames: Vec<u32> = grouping.groups().iter().map(|group| self.frame(group, by)).collect();
        let mut of_stack = vec![0; stacks.len()];
        for (stack, frame) in stacks.iter().enumerate().skip(1) {
            of_stack[stack] = grouping
                .of_location(frame.location)
                .iter()
                .rev()
                .fold(of_stack[frame.caller as usize], |node, &group| {
                    self.child(node, frames[group as usize], Kind::Frame)
                });
        }
        let of_row: Vec<u32> = profile
            .rows()
            .iter()
            .map(|row| {
                let node = match of_stack[row.stack as usize] {
                    0 => self.child(0, frames[no_stack as usize], Kind::Frame),
                    node => node,
                };
                classes[row.labels as usize].map_or(node, |class| self.child(node, class, Kind::Class))
            })
            .collect();
        order.iter().map(|&column| flat(profile, column, &of_row)).collect()
    }

    fn child(&mut self, parent: u32, frame: u32, kind: Kind) -> u32 {
        self.nodes.id(&(parent, frame, kind))
    }

    /// The same line may have been found with different functions in it in different profiles, and of a method with
    /// several blocks, all of which have its name, a different one first: it is one frame.
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

fn flat(profile: &Profile, column: usize, of_row: &[u32]) -> Flat {
    let estimator = Estimator::new(profile, column);
    let rows = profile.rows().iter().enumerate();
    let mut flat: Flat = rows.map(|(number, &row)| (of_row[number], estimator.row(number, row))).collect();
    flat.retain(|(_, sum)| sum.value != 0);
    add_up(&mut flat);
    flat
}

fn add_up(flat: &mut Flat) {
    flat.sort_by_key(|&(node, _)| node);
    flat.dedup_by(|next, first| {
        let same = next.0 == first.0;
        if same {
            first.1 += next.1;
        }
        same
    });
}

/// For each node with values that by which it is shown, and the nodes that are shown.
fn fold_small(nodes: &[Node], sums: &[Vec<Flat>], min_fraction: f64) -> (Vec<u32>, Vec<Node>) {
    let mut present = vec![false; nodes.len()];
    let mut great = vec![false; nodes.len()];
    let mut cumulative = vec![0_i64; nodes.len()];
    for flat in sums.iter().flatten() {
        cumulative.fill(0);
        flat.iter().for_each(|&(node, sum)| cumulative[node as usize] = sum.value);
        for node in (1..nodes.len()).rev() {
            let value = cumulative[node];
            let parent = &mut cumulative[nodes[node].0 as usize];
            *parent = parent.saturating_add(value);
        }
        let least = min_fraction * cumulative[0].unsigned_abs() as f64;
        for (node, &value) in cumulative.iter().enumerate().filter(|&(_, &value)| value != 0) {
            present[node] = true;
            great[node] |= value.unsigned_abs() as f64 >= least;
        }
    }
    let mut shown: Table<Node, SecretState> = Table::default();
    shown.id(&nodes[0]);
    let mut targets = vec![0; nodes.len()];
    for (number, &(parent, frame, kind)) in nodes.iter().enumerate().skip(1) {
        let parent = targets[parent as usize];
        let other = if kind == Kind::Class { Kind::OtherClasses } else { Kind::OtherFrames };
        targets[number] = match shown.values()[parent as usize].2 {
            Kind::OtherFrames => parent,
            // As stacks of samples that were filtered out.
            _ if !present[number] => parent,
            _ if great[number] => shown.id(&(parent, frame, kind)),
            _ => shown.id(&(parent, NO_FRAME, other)),
        };
    }
    (targets, shown.into_values())
}

fn frames_json(forest: &Forest, shown: &[u32], strings: &mut Table<Arc<str>, SecretState>) -> Value {
    let frames: Vec<&Group> = shown.iter().map(|&frame| &forest.frames.values()[frame as usize]).collect();
    let mut optional = |text: Option<&Arc<str>>| text.map_or(0, |text| strings.id(text));
    let names: Vec<u32> = frames.iter().map(|frame| optional(Some(&frame.name))).collect();
    let files: Vec<u32> = frames.iter().map(|frame| optional(frame.file.as_ref())).collect();
    let gem = |frame: &Group| frame.file.as_ref().map(|file| Arc::from(gem::of(file)));
    let gems: Vec<u32> = frames.iter().map(|frame| optional(gem(frame).as_ref())).collect();
    let lines: Vec<i64> = shown.iter().map(|&frame| forest.lines[frame as usize].unwrap_or_default()).collect();
    json!({ "name": names, "file": files, "line": lines, "gem": gems })
}

fn values_json(flat: &Flat, targets: &[u32], known: bool) -> Value {
    let mut shown: Flat = flat.iter().map(|&(node, sum)| (targets[node as usize], sum)).collect();
    add_up(&mut shown);
    // Four digits tell more than an estimated error means.
    let rounded = |of: fn(&Sum) -> f64| -> Vec<f64> {
        let digits = |value: f64| format!("{value:.3e}").parse().unwrap_or(value);
        if known { shown.iter().map(|(_, sum)| digits(of(sum))).collect() } else { Vec::new() }
    };
    json!({
        "node": shown.iter().map(|&(node, _)| node).collect::<Vec<_>>(),
        "value": shown.iter().map(|(_, sum)| sum.value).collect::<Vec<_>>(),
        "variance": rounded(|sum| sum.variance),
        "samples": rounded(|sum| sum.samples),
    })
}
