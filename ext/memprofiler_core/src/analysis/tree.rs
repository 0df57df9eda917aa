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
    let mut of_row = Vec::with_capacity(profile.rows().len());
    for (number, &row) in profile.rows().iter().enumerate() {
        interrupt.at(number)?;
        let node = of_stack[row.stack as usize];
        let has_class = options.classes || !with_frames;
        of_row.push(if has_class { nodes.child(node, grouping.of_class(row.labels)) } else { node });
    }
    drop(of_stack);
    let shown = Shown::new(profile, column, &nodes.into_nodes(), &of_row, options, interrupt)?;
    let [mut flat, mut cumulative] = [(); 2].map(|()| vec![Sum::default(); shown.nodes.len()]);
    for (row, &node) in of_row.iter().enumerate() {
        interrupt.at(row)?;
        let (sum, (number, is_shown)) = (&estimator.row(row), shown.places[node as usize]);
        cumulative[number as usize] += sum;
        if is_shown {
            flat[number as usize] += sum;
        }
    }
    add_to_parents(&mut cumulative, |number| shown.nodes[number].0, interrupt)?;
    let sums = flat.into_iter().zip(cumulative);
    let nodes = shown.nodes.into_iter().zip(sums).map(|((parent, group), (flat, cumulative))| TreeNode {
        parent,
        group,
        flat,
        cumulative,
    });
    Ok((nodes.collect(), grouping.into_groups()))
}

/// Which nodes are shown. A deep stack has many, so only these have sums with errors.
struct Shown {
    /// The parent and group of each.
    nodes: Vec<(u32, Option<u32>)>,
    /// For each node of the whole tree, the one that has its values: itself if it is shown, or else the next one above.
    places: Vec<(u32, bool)>,
}

impl Shown {
    /// `all` are pairs of a parent and a group; `of_row` has a node for each row.
    fn new(
        profile: &Profile,
        column: usize,
        all: &[(u32, u32)],
        of_row: &[u32],
        options: TreeOptions,
        interrupt: &Interrupt,
    ) -> Result<Self, Interrupted> {
        let mut values = vec![0_i64; all.len()];
        for (row, &node) in of_row.iter().enumerate() {
            interrupt.at(row)?;
            let value = &mut values[node as usize];
            *value = value.saturating_add(profile.values(row)[column]);
        }
        let mut sizes: Vec<_> = values.into_iter().map(|value| Saturating(value.unsigned_abs())).collect();
        add_to_parents(&mut sizes, |node| all[node].0, interrupt)?;
        let least = options.min_fraction * sizes[0].0 as f64;
        let mut shown = Self { nodes: vec![(0, None)], places: Vec::with_capacity(all.len()) };
        shown.places.push((0, true));
        let mut depths = vec![0_u32; all.len()];
        for (number, &(parent, group)) in all.iter().enumerate().skip(1) {
            interrupt.at(number)?;
            let Saturating(size) = sizes[number];
            let (above, is_above_shown) = shown.places[parent as usize];
            depths[number] = depths[parent as usize].saturating_add(1);
            let is_great = size != 0 && size as f64 >= least;
            if is_above_shown && is_great && depths[number] <= options.max_depth {
                shown.places.push((shown.nodes.len() as u32, true));
                shown.nodes.push((above, Some(group)));
            } else {
                shown.places.push((above, false));
            }
        }
        Ok(shown)
    }
}
