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

mod data;
mod forest;

use super::estimate::Estimator;
use super::grouping::By;
use super::json;
use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::{CombineError, PrefixTree, Profile, ROOT, add_to_parents, columns};
use crate::table::Table;
use data::{Frames, Graph, Nodes, Values};
use forest::{Flat, Forest, Item, Kind, NO_FRAME, Node};
use std::num::Saturating;
use std::sync::Arc;

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
    let frames = Frames::new(&forest, shown.values(), &mut strings);
    let mut values = Vec::new();
    for ((profile, order), columns) in profiles.iter().zip(&orders).zip(&sums) {
        let of_profile = order
            .iter()
            .zip(columns)
            .map(|(&column, flat)| Values::new(flat, &targets, &Estimator::new(profile, column), interrupt));
        values.push(of_profile.collect::<Result<_, _>>()?);
    }
    let strings = strings.values().iter().map(|text| &**text).collect();
    Ok(json::to_string(&Graph { strings, frames, nodes, values }, interrupt)?)
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
