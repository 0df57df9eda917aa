//! What is known of the names of nodes and edges.

use super::{Describe, Edge, Graph, Kind, NodeId, NodeName, Sample};
use crate::hash::Map;
use crate::table::Table;

/// A name by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NameId(u32);

/// A label of an edge by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EdgeId(u32);

impl EdgeId {
    /// That of [`Edge::Unknown`].
    pub const UNKNOWN: Self = Self(0);
}

/// Remembers what was described, so that each parent is asked once for all its children. Equal names are kept once,
/// since there may be a million objects.
pub struct Names<'a, D> {
    graph: &'a Graph,
    describe: &'a mut D,
    names: Table<NodeName>,
    of_nodes: Map<NodeId, NameId>,
    labels: Table<Edge>,
    of_edges: Map<(NodeId, NodeId), EdgeId>,
}

impl<'a, D: Describe> Names<'a, D> {
    /// Nothing was described yet.
    pub fn new(graph: &'a Graph, describe: &'a mut D) -> Self {
        let mut labels = Table::default();
        labels.id(&Edge::Unknown);
        Self { graph, describe, names: Table::default(), of_nodes: Map::default(), labels, of_edges: Map::default() }
    }

    /// Asks for the edges that are not known yet, pairs of parents and children.
    pub fn learn(&mut self, mut edges: Vec<(NodeId, NodeId)>) {
        edges.retain(|edge| has_names(self.graph, edge.0) && !self.of_edges.contains_key(edge));
        edges.sort_unstable();
        edges.dedup();
        for of_parent in edges.chunk_by(|(one, _), (other, _)| one == other) {
            let children: Vec<NodeId> = of_parent.iter().map(|&(_, child)| child).collect();
            let labels = self.describe.edges(of_parent[0].0, &children);
            for (&edge, label) in of_parent.iter().zip(labels) {
                self.of_edges.insert(edge, EdgeId(self.labels.id(&label)));
            }
        }
    }

    /// The label of an edge; unknown if it was not learned.
    pub fn edge(&self, parent: NodeId, child: NodeId) -> EdgeId {
        self.of_edges.get(&(parent, child)).copied().unwrap_or(EdgeId::UNKNOWN)
    }

    /// A label by its number.
    pub fn label(&self, id: EdgeId) -> &Edge {
        &self.labels.values()[id.0 as usize]
    }

    /// The number of a node's name.
    pub fn id(&mut self, node: NodeId) -> NameId {
        if let Some(&known) = self.of_nodes.get(&node) {
            return known;
        }
        let name = match self.graph.category(node) {
            Some(category) => NodeName { text: name_of_category(category).to_owned(), ..NodeName::default() },
            None if node == NodeId::ROOT => NodeName { text: "root".to_owned(), ..NodeName::default() },
            None => self.describe.node(node),
        };
        let id = self.add(&name);
        self.of_nodes.insert(node, id);
        id
    }

    /// The number of a name.
    pub fn add(&mut self, name: &NodeName) -> NameId {
        NameId(self.names.id(name))
    }

    /// A name by its number.
    pub fn name(&self, id: NameId) -> &NodeName {
        &self.names.values()[id.0 as usize]
    }

    /// The name of a node.
    pub fn node(&mut self, node: NodeId) -> &NodeName {
        let id = self.id(node);
        self.name(id)
    }

    /// The name of the class of a sampled object: as recorded, or else that of its node's, or that node's own.
    pub fn class<'b>(&'b mut self, sample: &'b Sample, node: Option<NodeId>) -> &'b str {
        match (&sample.class, node) {
            (Some(class), _) => class,
            (None, Some(node)) => &self.node(self.graph.class(node).unwrap_or(node)).text,
            (None, None) => "(no class)",
        }
    }
}

/// Whether the edges of a node have names: those of code, caches and most roots explain nothing.
fn has_names(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.kind(node), Kind::Anchor | Kind::Thread | Kind::EndedThread | Kind::Plain)
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
