//! The call tree of several profiles, and what each of its nodes has of each.

use crate::analysis::estimate::{Estimator, Sum};
use crate::analysis::grouping::{By, Group, Grouping};
use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::{PrefixTree, Profile, ROOT, sort_by_number};
use crate::table::Table;

/// The kind of a node: `kind` in the JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Frame = 0,
    /// The class of the objects, below the innermost frame.
    Class = 1,
    /// Frames too small to show.
    OtherFrames = 2,
    /// Classes too small to show.
    OtherClasses = 3,
}

/// The frame and kind of a node, which identify it among its siblings.
pub(super) type Item = (u32, Kind);

/// A node: its parent and its item.
pub(super) type Node = (u32, Item);

/// The first frame, which has no name. The root has it, and so do the nodes that stand for what was too small.
pub(super) const NO_FRAME: u32 = 0;

/// The sums of one column of a profile by node, for nodes with samples of their own. Sorted by node.
pub(super) type Flat = Vec<(u32, Sum)>;

/// The nodes of all profiles.
pub(super) struct Forest {
    pub frames: Table<Group>,
    /// For each frame.
    pub lines: Vec<Option<i64>>,
    pub nodes: PrefixTree<Item>,
}

impl Forest {
    /// Without nodes but the root.
    pub fn new() -> Self {
        let nodes = PrefixTree::new((NO_FRAME, Kind::Frame));
        let mut forest = Self { frames: Table::default(), lines: Vec::new(), nodes };
        forest.frame(&Group::named("".into()), By::Method);
        forest
    }

    /// Adds a profile's nodes. Returns its sums, for each column in `order`.
    pub fn add(
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
pub(super) fn add_up(
    mut numbers: Vec<(u32, u32)>,
    sum: impl Fn(u32) -> Sum,
    interrupt: &Interrupt,
) -> Result<Flat, Interrupted> {
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
