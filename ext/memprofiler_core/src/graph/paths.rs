//! Paths as they are shown: without the repetitions of lists.

use super::{Graph, Kind, NodeId, Search};

/// How many objects in a row must repeat the classes of those before them to be a list.
const ROW: usize = 8;
/// The longest repetition that is noticed: a list whose elements are so many objects each.
const PERIOD: usize = 4;

/// The paths of a search. Objects far down a list are shown in the place of those near its beginning, so that the path
/// to the content of a list of a million objects is as short as that of ten.
pub struct Paths<'a> {
    graph: &'a Graph,
    search: &'a Search,
    /// The node in whose place each one is shown; none if that is not known yet.
    places: Vec<NodeId>,
}

impl<'a> Paths<'a> {
    /// Paths found by that search.
    pub fn new(graph: &'a Graph, search: &'a Search) -> Self {
        Self { graph, search, places: vec![NodeId::NONE; graph.len()] }
    }

    /// The node in whose place a node is shown: itself, or one nearer to the beginning of the list that it is in.
    pub fn place(&mut self, node: NodeId) -> NodeId {
        let is_new = |&node: &NodeId| self.places[node.index()] == NodeId::NONE;
        let new: Vec<NodeId> =
            std::iter::successors(Some(node), |&node| self.search.before(node)).take_while(is_new).collect();
        for &node in new.iter().rev() {
            self.places[node.index()] = self.repeated(node).map_or(node, |earlier| self.places[earlier.index()]);
        }
        self.places[node.index()]
    }

    /// The node before this one that it repeats.
    fn repeated(&self, node: NodeId) -> Option<NodeId> {
        if self.graph.kind(node) != Kind::Plain {
            return None;
        }
        let mut row = [node; ROW + PERIOD];
        let mut length = 1;
        while length < row.len() {
            let Some(before) = self.search.before(row[length - 1]) else { break };
            row[length] = before;
            length += 1;
        }
        let class = |index: usize| self.graph.class_number(row[index]);
        let repeats = |&period: &usize| ROW + period <= length && (0..ROW).all(|at| class(at) == class(at + period));
        (1..=PERIOD).find(repeats).map(|period| row[period])
    }

    /// What refers to a node on its path, and in whose place that is shown; None if the path begins with the node.
    pub fn before(&mut self, node: NodeId) -> Option<(NodeId, NodeId)> {
        let before = self.search.before(node)?;
        Some((before, self.place(before)))
    }

    /// The nodes of the path to a node as they are shown, the last one first.
    pub fn backwards(&mut self, node: NodeId) -> impl Iterator<Item = NodeId> {
        let start = self.place(node);
        std::iter::successors(Some(start), move |&node| self.before(node).map(|(_, before)| before))
    }
}
