//! The objects that keep the most memory alive, whoever allocated it.

use super::bit_set::BitSet;
use super::{Dominators, Graph, Kind, NodeId};
use crate::hash::Map;

/// The least part of all memory that counts.
const LEAST_SHARE: f64 = 0.01;

/// The nodes where memory accumulates, and the bytes that each keeps alive, those with the most first: without samples,
/// so that a single object counts, too, and what is older than the profiler.
///
/// From the root down the dominator tree: where a child has more than half of what an object retains, memory accumulates
/// further down; if nowhere, as in a list, whose objects retain each other, it does at the object itself. What is below
/// such an object is a part of it. Classes, threads and kinds of roots are not one thing but have several, so they count
/// with what is left besides other classes and objects that count.
pub fn largest(graph: &Graph, dominators: &Dominators) -> Vec<(NodeId, u64)> {
    let tree = Tree::new(graph, dominators);
    let mut largest = tree.accumulated();
    largest.sort_by_key(|&(number, bytes)| (std::cmp::Reverse(bytes), number));
    largest.into_iter().map(|(number, bytes)| (dominators.node(number), bytes)).collect()
}

/// The nodes that retain so much that they may count: the root's end of the dominator tree.
struct Tree<'a> {
    graph: &'a Graph,
    dominators: &'a Dominators,
    /// Their numbers, those of parents first.
    large: Vec<u32>,
    least: u64,
    /// What the child retains that retains the most, by the parent's number.
    heaviest: Map<u32, u64>,
    /// What those children of classes and the like retain that count for themselves or are classes.
    apart: Map<u32, u64>,
}

impl<'a> Tree<'a> {
    fn new(graph: &'a Graph, dominators: &'a Dominators) -> Self {
        let all = dominators.retained(NodeId::ROOT, graph);
        let least = ((all as f64 * LEAST_SHARE) as u64).max(1);
        let (large, heaviest, apart) = Default::default();
        let mut tree = Self { graph, dominators, large, least, heaviest, apart };
        for number in 1..dominators.count() {
            let parent = dominators.dominator_of(number);
            if tree.retained(parent) < least {
                continue;
            }
            let retained = tree.retained(number);
            let heaviest = tree.heaviest.entry(parent).or_default();
            *heaviest = retained.max(*heaviest);
            if retained >= least {
                tree.large.push(number);
            }
            if tree.has_several(parent) && (retained >= least || tree.kind(number) == Kind::Anchor) {
                *tree.apart.entry(parent).or_default() += retained;
            }
        }
        tree
    }

    fn retained(&self, number: u32) -> u64 {
        self.dominators.retained(self.dominators.node(number), self.graph)
    }

    fn kind(&self, number: u32) -> Kind {
        self.graph.kind(self.dominators.node(number))
    }

    fn has_several(&self, number: u32) -> bool {
        matches!(self.kind(number), Kind::Category | Kind::Anchor | Kind::Thread)
    }

    /// Whether no child has more than half of what a node retains.
    fn accumulates(&self, number: u32) -> bool {
        2 * self.heaviest.get(&number).copied().unwrap_or_default() <= self.retained(number)
    }

    /// The nodes below which memory accumulates.
    fn passed(&self) -> BitSet {
        let mut passed = BitSet::new(self.dominators.count() as usize);
        for &number in self.large.iter().rev() {
            if self.has_several(number) || self.accumulates(number) || passed.contains(number as usize) {
                passed.insert(self.dominators.dominator_of(number) as usize);
            }
        }
        passed
    }

    /// The nodes where memory accumulates, with the bytes that count.
    fn accumulated(&self) -> Vec<(u32, u64)> {
        let passed = self.passed();
        let mut parts = BitSet::new(self.dominators.count() as usize);
        let mut found = Vec::new();
        for &number in &self.large {
            if parts.contains(self.dominators.dominator_of(number) as usize) {
                parts.insert(number as usize);
            } else if self.has_several(number) {
                let bytes = self.retained(number) - self.apart.get(&number).copied().unwrap_or_default();
                found.extend((bytes >= self.least).then_some((number, bytes)));
            } else if self.accumulates(number) || !passed.contains(number as usize) {
                found.push((number, self.retained(number)));
                parts.insert(number as usize);
            }
        }
        found
    }
}
