//! What would be freed with an object.

use super::spanning_tree::{NONE, SpanningTree};
use super::{Graph, NodeId};

/// The dominator tree of a graph: a node dominates another if every path from the root to that one passes through it.
/// So a node retains what it dominates, and nothing else. Only edges to [what nodes hold](Graph::held) count: caches
/// hold nothing.
///
/// Found by Semi-NCA, from Georgiadis and Tarjan, "Finding dominators revisited" (2004) and Georgiadis's thesis
/// "Linear- time algorithms for dominators and related problems" (2005), section 2.5. It numbers the nodes in the order
/// of a depth-first search. The semidominator of w is the smallest number of which a path leads to w through greater
/// numbers than w; it is found for the greatest w first, from those of w's predecessors, with compressed paths as in
/// Lengauer and Tarjan's algorithm. The dominator of w is then the nearest common ancestor, in the dominator tree, of
/// w's semidominator and its parent. Nothing recurses.
///
/// Nodes that nothing holds, which only caches refer to, are not in the tree.
#[derive(Debug)]
pub struct Dominators {
    /// The number of each node in the depth-first order.
    numbers: Vec<u32>,
    /// The nodes in that order.
    order: Vec<NodeId>,
    /// The number of each one's dominator, by number. It is less than its own, but for the root, which has itself.
    dominators: Vec<u32>,
    /// By number.
    retained: Vec<u64>,
    /// By number, the positions of a node and of what it dominates in an order in which these follow it at once: the
    /// first, and the one after the last.
    positions: Vec<(u32, u32)>,
}

impl Dominators {
    /// Finds the dominators of a graph, in nearly linear time.
    pub fn new(graph: &Graph) -> Self {
        let tree = SpanningTree::new(graph);
        let semidominators = tree.semidominators(graph);
        let SpanningTree { numbers, order, parents: mut dominators, .. } = tree;
        for number in 1..dominators.len() {
            let mut dominator = dominators[number];
            while dominator > semidominators[number] {
                dominator = dominators[dominator as usize];
            }
            dominators[number] = dominator;
        }
        drop(semidominators);
        let mut retained: Vec<u64> = order.iter().map(|&node| graph.bytes(node)).collect();
        for number in (1..retained.len()).rev() {
            retained[dominators[number] as usize] += retained[number];
        }
        let positions = positions(&dominators);
        Self { numbers, order, dominators, retained, positions }
    }

    /// The nearest node through which all paths to this one pass; None of the root, and of what only caches refer to.
    pub fn dominator(&self, node: NodeId) -> Option<NodeId> {
        let number = self.number(node).filter(|&number| number > 0)?;
        Some(self.node(self.dominator_of(number)))
    }

    /// Whether one node is another, or dominates it.
    pub fn dominates(&self, node: NodeId, other: NodeId) -> bool {
        let (Some(number), Some(other)) = (self.number(node), self.number(other)) else { return node == other };
        let (first, end) = self.positions[number as usize];
        (first..end).contains(&self.positions[other as usize].0)
    }

    /// The bytes that would be freed with the node: its own, and those of all that it dominates.
    pub fn retained(&self, node: NodeId, graph: &Graph) -> u64 {
        self.number(node).map_or_else(|| graph.bytes(node), |number| self.retained[number as usize])
    }

    /// How many nodes there are in the tree; their numbers are less.
    pub(super) fn count(&self) -> u32 {
        self.order.len() as u32
    }

    /// The number of a node, which is greater than that of its dominator.
    pub(super) fn number(&self, node: NodeId) -> Option<u32> {
        Some(self.numbers[node.index()]).filter(|&number| number != NONE)
    }

    /// The node with that number.
    pub(super) fn node(&self, number: u32) -> NodeId {
        self.order[number as usize]
    }

    /// The number of the dominator of the node with that number, which is not that of the root.
    pub(super) fn dominator_of(&self, number: u32) -> u32 {
        self.dominators[number as usize]
    }
}

/// [`Dominators::positions`]: of siblings, those with smaller numbers come first.
fn positions(dominators: &[u32]) -> Vec<(u32, u32)> {
    // At first how many each one dominates, with itself.
    let mut positions = vec![(0, 1); dominators.len()];
    for number in (1..dominators.len()).rev() {
        positions[dominators[number] as usize].1 += positions[number].1;
    }
    // Where the next node that this one dominates directly begins.
    let mut next = vec![1; dominators.len()];
    for number in 1..dominators.len() {
        let first: u32 = next[dominators[number] as usize];
        let size = positions[number].1;
        next[dominators[number] as usize] = first + size;
        next[number] = first + 1;
        positions[number] = (first, first + size);
    }
    positions
}
