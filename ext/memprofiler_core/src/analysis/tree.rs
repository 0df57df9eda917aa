//! The call tree.

use super::estimate::{Estimator, Sum};
use super::grouping::{By, Group, Grouping};
use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::{PrefixTree, Profile, ROOT, add_to_parents};
use std::num::Saturating;

/// What the tree shows.
#[derive(Debug, Clone, Copy)]
pub struct TreeOptions {
    /// What a node stands for. With [`By::Class`] there are no frames.
    pub by: By,
    /// Whether the class of the objects follows the innermost frame.
    pub classes: bool,
    /// Leaves out nodes with a smaller part of the total than this, and everything that they call. In a difference,
    /// what has grown and what has shrunk do not cancel out for that.
    pub min_fraction: f64,
    /// Leaves out nodes below this depth; the root has depth 0.
    pub max_depth: u32,
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeNode {
    /// The index of its caller, which is smaller than its own; 0 for the root.
    pub parent: u32,
    /// Index of the group; None for the root.
    pub group: Option<u32>,
    /// Allocated directly in it.
    pub flat: Sum,
    /// Allocated in it and in what it calls.
    pub cumulative: Sum,
}

/// The call tree for one column, root first, and the groups that its nodes refer to.
pub fn tree(
    profile: &Profile,
    column: usize,
    options: TreeOptions,
    interrupt: &Interrupt,
) -> Result<(Vec<TreeNode>, Vec<Group>), Interrupted> {
    let estimator = Estimator::new(profile, column);
    let mut grouping = Grouping::new(profile, options.by, interrupt)?;
    let with_frames = options.by != By::Class;
    let mut nodes: PrefixTree<u32> = PrefixTree::new(u32::MAX);
    let frames = &profile.tables().stacks;
    let mut of_stack = vec![ROOT; frames.len()];
    for (stack, frame) in frames.iter().enumerate().skip(1).filter(|_| with_frames) {
        interrupt.at(stack)?;
        let groups = grouping.of_location(frame.location).iter().rev();
        of_stack[stack] = groups.fold(of_stack[frame.caller as usize], |node, &group| nodes.child(node, group));
    }
    let mut flat = vec![Sum::default(); nodes.len()];
    for (number, &row) in profile.rows().iter().enumerate() {
        interrupt.at(number)?;
        let mut node = of_stack[row.stack as usize];
        if options.classes || !with_frames {
            node = nodes.child(node, grouping.of_class(row.labels));
            flat.resize(nodes.len(), Sum::default());
        }
        flat[node as usize] += &estimator.row(number);
    }
    let nodes = nodes.into_nodes();
    let mut cumulative = flat.clone();
    add_to_parents(&mut cumulative, |node| nodes[node].0, interrupt)?;
    Ok((prune(&nodes, &flat, &cumulative, options, interrupt)?, grouping.into_groups()))
}

/// `nodes` are pairs of a parent and a group.
fn prune(
    nodes: &[(u32, u32)],
    flat: &[Sum],
    cumulative: &[Sum],
    options: TreeOptions,
    interrupt: &Interrupt,
) -> Result<Vec<TreeNode>, Interrupted> {
    const GONE: u32 = u32::MAX;
    let mut sizes: Vec<_> = flat.iter().map(|sum| Saturating(sum.value.unsigned_abs())).collect();
    add_to_parents(&mut sizes, |node| nodes[node].0, interrupt)?;
    let least = options.min_fraction * sizes[0].0 as f64;
    let mut kept = vec![TreeNode { parent: 0, group: None, flat: flat[0].clone(), cumulative: cumulative[0].clone() }];
    let mut new_numbers = vec![0; nodes.len()];
    let mut depths = vec![0_u32; nodes.len()];
    for (number, &(parent, group)) in nodes.iter().enumerate().skip(1) {
        interrupt.at(number)?;
        depths[number] = depths[parent as usize].saturating_add(1);
        let parent = new_numbers[parent as usize];
        let Saturating(size) = sizes[number];
        let shown = size != 0 && size as f64 >= least && depths[number] <= options.max_depth;
        if parent == GONE || !shown {
            new_numbers[number] = GONE;
            continue;
        }
        new_numbers[number] = kept.len() as u32;
        let (flat, cumulative) = (flat[number].clone(), cumulative[number].clone());
        kept.push(TreeNode { parent, group: Some(group), flat, cumulative });
    }
    Ok(kept)
}
