//! The graph, in flat arrays.

use super::address_index::AddressIndex;
use super::bit_set::BitSet;
use super::{Kind, NodeId};
use crate::hash::Map;
use std::ops::Range;

/// The class of what has none.
pub const NO_CLASS: u32 = u32::MAX;
/// Says that a node's bytes are among the great ones.
const GREAT: u32 = u32::MAX;

/// The objects of a heap and the references between them.
#[derive(Debug)]
pub struct Graph {
    pub(super) addresses: Vec<u64>,
    /// Where the edges of each node begin, and at the end where those of the last one end.
    pub(super) rows: Vec<u32>,
    pub(super) edges: Vec<NodeId>,
    /// Where the edges of code end that count as held by it, where others follow.
    held_ends: Map<u32, u32>,
    kinds: Vec<Kind>,
    bytes: Vec<u32>,
    great: Map<u32, u64>,
    class_numbers: Vec<u32>,
    /// The addresses of the classes.
    pub(super) classes: Vec<u64>,
    pub(super) categories: Vec<&'static str>,
    index: AddressIndex,
}

impl Graph {
    pub(super) fn new() -> Self {
        let mut graph = Self {
            addresses: Vec::new(),
            rows: Vec::new(),
            edges: Vec::new(),
            held_ends: Map::default(),
            kinds: Vec::new(),
            bytes: Vec::new(),
            great: Map::default(),
            class_numbers: Vec::new(),
            classes: Vec::new(),
            categories: Vec::new(),
            index: AddressIndex::new(),
        };
        graph.add(0);
        graph.describe(0, Kind::Root, 0, NO_CLASS);
        graph
    }

    pub(super) fn add(&mut self, address: u64) {
        self.addresses.push(address);
    }

    /// The edges added from here on are those of the next node.
    pub(super) fn begin_row(&mut self) {
        self.rows.push(self.edges.len() as u32);
    }

    /// Adds an edge to what is at that address. Beyond 2^30 nodes or 2^32 edges, which nobody has memory for, edges are
    /// left out.
    #[inline]
    pub(super) fn refer_to(&mut self, address: u64) {
        let new = NodeId::new(self.addresses.len());
        if new.index() >= AddressIndex::LIMIT || self.edges.len() >= u32::MAX as usize {
            return;
        }
        let node = self.index.get_or_insert(address, new);
        if node == new {
            self.add(address);
        }
        self.edges.push(node);
    }

    /// Describes a node: the last one, or the one after it.
    #[inline]
    pub(super) fn describe(&mut self, number: usize, kind: Kind, bytes: u64, class: u32) {
        if number == self.kinds.len() {
            self.kinds.push(kind);
            self.bytes.push(0);
            self.class_numbers.push(class);
        }
        (self.kinds[number], self.class_numbers[number]) = (kind, class);
        self.bytes[number] = u32::try_from(bytes).unwrap_or(GREAT);
        if self.bytes[number] == GREAT {
            self.great.insert(number as u32, bytes);
        }
    }

    /// Gives back the memory that nothing was put into: what comes next needs as much again as the graph.
    pub(super) fn shrink(&mut self) {
        self.addresses.shrink_to_fit();
        self.rows.shrink_to_fit();
        self.edges.shrink_to_fit();
        self.kinds.shrink_to_fit();
        self.bytes.shrink_to_fit();
        self.class_numbers.shrink_to_fit();
        self.index.shrink();
    }

    /// The number of nodes: the root, its categories, and the objects.
    #[allow(clippy::len_without_is_empty, reason = "there is always a root")]
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// The number of edges.
    pub fn edges(&self) -> usize {
        self.edges.len()
    }

    /// All nodes.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<> {
        (0..self.len()).map(NodeId::new)
    }

    /// What a node refers to, as often as it does.
    #[inline]
    pub fn out(&self, node: NodeId) -> &[NodeId] {
        let row = self.row(node);
        &self.edges[row.start as usize..row.end as usize]
    }

    /// The indices of a node's edges.
    #[inline]
    pub(super) fn row(&self, node: NodeId) -> Range<u32> {
        self.rows[node.index()]..self.rows[node.index() + 1]
    }

    /// The indices of the edges to what a node holds: none of a cache, since the VM drops caches when it needs to, and
    /// of code none to what a [cached constant](Self::tell_cached_constants) has.
    #[inline]
    pub(super) fn held(&self, node: NodeId) -> Range<u32> {
        let row = self.row(node);
        match self.kind(node) {
            Kind::Cache => row.start..row.start,
            Kind::Code => row.start..self.held_ends.get(&(node.index() as u32)).copied().unwrap_or(row.end),
            _ => row,
        }
    }

    /// Tells the edges of code to what an anchor refers to from the others, and puts them behind these. A JIT compiler
    /// puts the values of constants into the code, and drops the code when a constant changes: that is a cache, too.
    pub(super) fn tell_cached_constants(&mut self) {
        let mut anchored = BitSet::new(self.len());
        for anchor in self.nodes().filter(|&node| self.kind(node) == Kind::Anchor) {
            self.out(anchor).iter().for_each(|child| anchored.insert(child.index()));
        }
        for code in self.nodes() {
            if self.kind(code) != Kind::Code {
                continue;
            }
            let row = self.row(code);
            let edges = &mut self.edges[row.start as usize..row.end as usize];
            if edges.iter().any(|child| anchored.contains(child.index())) {
                edges.sort_by_key(|child| anchored.contains(child.index()));
                let held = edges.partition_point(|child| !anchored.contains(child.index())) as u32;
                self.held_ends.insert(code.index() as u32, row.start + held);
            }
        }
    }

    /// The node of the object at an address.
    pub fn node(&self, address: u64) -> Option<NodeId> {
        self.index.get(address)
    }

    /// The address of a node's object; 0 of the root and its categories.
    pub fn address(&self, node: NodeId) -> u64 {
        self.addresses[node.index()]
    }

    /// The kind of a node.
    #[inline]
    pub fn kind(&self, node: NodeId) -> Kind {
        self.kinds[node.index()]
    }

    /// The bytes of a node's object.
    #[inline]
    pub fn bytes(&self, node: NodeId) -> u64 {
        match self.bytes[node.index()] {
            GREAT => self.great.get(&(node.index() as u32)).copied().unwrap_or(0),
            bytes => bytes.into(),
        }
    }

    /// The class of a node's object, if it has one and that is in the graph.
    pub fn class(&self, node: NodeId) -> Option<NodeId> {
        self.node(*self.classes.get(self.class_number(node)? as usize)?)
    }

    /// A number that two nodes share if they are of the same class.
    #[inline]
    pub(super) fn class_number(&self, node: NodeId) -> Option<u32> {
        Some(self.class_numbers[node.index()]).filter(|&class| class != NO_CLASS)
    }

    /// The name of a category of roots.
    pub fn category(&self, node: NodeId) -> Option<&'static str> {
        self.categories.get(node.index().checked_sub(1)?).copied()
    }

    /// Whether a node is the root or one of its categories.
    pub(super) fn is_root(&self, node: NodeId) -> bool {
        node.index() <= self.categories.len()
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.addresses.len() * size_of::<u64>()
            + (self.rows.len() + self.edges.len() + self.bytes.len() + self.class_numbers.len()) * size_of::<u32>()
            + self.kinds.len()
            + self.index.memory()
    }
}
