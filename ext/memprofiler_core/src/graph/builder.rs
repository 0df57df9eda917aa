//! Makes a graph from what a walk over a heap sees.

use super::nodes::{Graph, NO_CLASS};
use super::{Kind, NodeId};
use crate::hash::Map;

/// A graph under construction.
///
/// Objects are numbered as they are found and described in that order, breadth first, so that the edges of each are
/// behind those of the one before: the rows of the graph need no sorting.
///
/// ```
/// # use memprofiler_core::graph::{Builder, Kind};
/// let mut builder = Builder::new();
/// builder.category(Kind::Category, "vm");
/// builder.edge(0x1000);
/// while let Some((_, address)) = builder.next() {
///     builder.object(Kind::Plain, 40, 0);
///     if address == 0x1000 {
///         builder.edge(0x1028);
///     }
/// }
/// let graph = builder.finish();
/// assert_eq!(graph.address(graph.out(graph.node(0x1000).unwrap())[0]), 0x1028);
/// ```
#[derive(Debug)]
pub struct Builder {
    graph: Graph,
    /// The addresses that the categories refer to, until the first object is asked for.
    roots: Vec<Vec<u64>>,
    /// The category that edges are added to.
    category: usize,
    class_numbers: Map<u64, u32>,
    last_class: (u64, u32),
}

impl Builder {
    /// A builder of a graph with only the root.
    pub fn new() -> Self {
        Self {
            graph: Graph::new(),
            roots: Vec::new(),
            category: 0,
            class_numbers: Map::default(),
            last_class: (0, NO_CLASS),
        }
    }

    /// Adds a category of roots, or goes on with the one of that name: [`edge`](Self::edge) then adds to it. All
    /// categories come before the first [`next`](Self::next); later ones are left out. `kind` is [`Kind::Anchor`] for
    /// the table of global variables, [`Kind::Cache`] if what it refers to does not count as held, else
    /// [`Kind::Category`].
    pub fn category(&mut self, kind: Kind, name: &'static str) {
        let graph = &mut self.graph;
        if !graph.rows.is_empty() {
            return;
        }
        let known = graph.categories.iter().position(|&known| known == name);
        self.category = known.unwrap_or_else(|| {
            graph.categories.push(name);
            graph.add(0);
            graph.describe(graph.categories.len(), kind, 0, NO_CLASS);
            self.roots.push(Vec::new());
            graph.categories.len() - 1
        });
    }

    /// The next object to describe, and its address.
    #[allow(clippy::should_implement_trait, reason = "the caller changes the builder between two objects")]
    #[inline]
    pub fn next(&mut self) -> Option<(NodeId, u64)> {
        if self.graph.rows.is_empty() {
            self.add_roots();
        }
        let number = self.graph.rows.len();
        let &address = self.graph.addresses.get(number)?;
        self.graph.begin_row();
        self.graph.describe(number, Kind::Plain, 0, NO_CLASS);
        Some((NodeId::new(number), address))
    }

    /// Describes the object that [`next`](Self::next) returned: its kind, its bytes, and the address of its class,
    /// which is 0 for what no Ruby program sees.
    #[inline]
    pub fn object(&mut self, kind: Kind, bytes: u64, class: u64) {
        let class = self.class_number(class);
        let graph = &mut self.graph;
        if let Some(number) = graph.rows.len().checked_sub(1) {
            graph.describe(number, kind, bytes, class);
        }
    }

    /// Adds a reference of the category or object described last. Address 0 is no reference.
    #[inline]
    pub fn edge(&mut self, address: u64) {
        if address == 0 {
            return;
        }
        if !self.graph.rows.is_empty() {
            self.graph.refer_to(address);
        } else if let Some(category) = self.roots.get_mut(self.category) {
            category.push(address);
        }
    }

    /// The graph.
    pub fn finish(mut self) -> Graph {
        while self.next().is_some() {}
        self.graph.begin_row();
        self.graph.tell_cached_constants();
        self.graph.shrink();
        self.graph
    }

    /// Adds the rows of the root and of the categories, once all of these are known: they are numbered before any
    /// object.
    fn add_roots(&mut self) {
        let graph = &mut self.graph;
        graph.begin_row();
        graph.edges.extend((1..=self.roots.len()).map(NodeId::new));
        for addresses in std::mem::take(&mut self.roots) {
            graph.begin_row();
            addresses.into_iter().for_each(|address| graph.refer_to(address));
        }
    }

    fn class_number(&mut self, class: u64) -> u32 {
        if class == 0 {
            return NO_CLASS;
        }
        if class != self.last_class.0 {
            let classes = &mut self.graph.classes;
            let number = *self.class_numbers.entry(class).or_insert_with(|| {
                classes.push(class);
                classes.len() as u32 - 1
            });
            self.last_class = (class, number);
        }
        self.last_class.1
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}
