//! What was found out about a graph.

use super::{Dominators, Graph, NodeId, Search};

/// The graph with its paths and dominators.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The paths.
    pub search: &'a Search,
    /// The dominators.
    pub dominators: &'a Dominators,
}

impl Found<'_> {
    /// The bytes that would be freed with a node.
    pub fn retained(self, node: NodeId) -> u64 {
        self.dominators.retained(node, self.graph)
    }
}
