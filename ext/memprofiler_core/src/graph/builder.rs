//! Makes a graph from what a walk over a heap sees.

use super::{Graph, Kind, NodeId};

/// A graph under construction.
#[derive(Debug, Default)]
pub struct Builder {}

impl Builder {
    /// A builder of a graph with only the root.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a category of roots, or goes on with the one of that name: [`edge`](Self::edge) then adds to it. All
    /// categories come before the first [`next`](Self::next). `kind` is [`Kind::Anchor`] for the table of global
    /// variables, else [`Kind::Category`].
    pub fn category(&mut self, _kind: Kind, _name: &'static str) {}

    /// The next object to describe, and its address.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<(NodeId, u64)> {
        None
    }

    /// Describes the object that [`next`](Self::next) returned: its kind, its bytes, and the address of its class, which
    /// is 0 for what no Ruby program sees.
    pub fn object(&mut self, _kind: Kind, _bytes: u64, _class: u64) {}

    /// Adds a reference of the category or object described last. Address 0 is no reference.
    pub fn edge(&mut self, _address: u64) {}

    /// The graph.
    pub fn finish(self) -> Graph {
        Graph {}
    }
}
