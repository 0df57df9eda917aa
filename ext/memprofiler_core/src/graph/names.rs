//! What is known of the names of nodes and edges.

use super::{Describe, Edge, Graph, Kind, NodeId, NodeName};
use crate::hash::Map;
use std::rc::Rc;

/// Remembers what was described, so that each parent is asked once for all its children.
pub struct Names<'a, D> {
    graph: &'a Graph,
    describe: &'a mut D,
    nodes: Map<NodeId, Rc<NodeName>>,
    edges: Map<(NodeId, NodeId), Edge>,
}

impl<'a, D: Describe> Names<'a, D> {
    /// Nothing was described yet.
    pub fn new(graph: &'a Graph, describe: &'a mut D) -> Self {
        Self { graph, describe, nodes: Map::default(), edges: Map::default() }
    }

    /// Asks for the edges that are not known yet, pairs of parents and children.
    pub fn learn(&mut self, mut edges: Vec<(NodeId, NodeId)>) {
        edges.retain(|edge| has_names(self.graph, edge.0) && !self.edges.contains_key(edge));
        edges.sort_unstable();
        edges.dedup();
        for of_parent in edges.chunk_by(|(one, _), (other, _)| one == other) {
            let children: Vec<NodeId> = of_parent.iter().map(|&(_, child)| child).collect();
            let labels = self.describe.edges(of_parent[0].0, &children);
            self.edges.extend(of_parent.iter().copied().zip(labels));
        }
    }

    /// The label of an edge; unknown if it was not learned.
    pub fn edge(&self, parent: NodeId, child: NodeId) -> Edge {
        self.edges.get(&(parent, child)).cloned().unwrap_or_default()
    }

    /// The name of a node.
    pub fn node(&mut self, node: NodeId) -> Rc<NodeName> {
        let name = self.nodes.entry(node).or_insert_with(|| {
            Rc::new(match self.graph.category(node) {
                Some(category) => NodeName { text: name_of_category(category).to_owned(), ..NodeName::default() },
                None if node == NodeId::ROOT => NodeName { text: "root".to_owned(), ..NodeName::default() },
                None => self.describe.node(node),
            })
        });
        Rc::clone(name)
    }

    /// The name of the class of a node's object, or else its own.
    pub fn class(&mut self, node: NodeId) -> Rc<NodeName> {
        let class = self.graph.class(node).unwrap_or(node);
        self.node(class)
    }
}

/// Whether the edges of a node have names: those of code, caches and most roots explain nothing.
fn has_names(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.kind(node), Kind::Anchor | Kind::Thread | Kind::Plain)
}

/// What the VM calls its kinds of roots, in plain words.
fn name_of_category(category: &'static str) -> &'static str {
    match category {
        "global_tbl" => "global variables",
        "machine_context" => "machine stack",
        "global_list" => "variables of C code",
        "global_symbols" => "symbols",
        "end_proc" => "at_exit",
        "object_id" => "object ids",
        "vm" => "VM",
        other => other,
    }
}
