//! Made-up heaps, and graphs of them.

use memprofiler_core::graph::{Builder, Describe, Edge, Graph, Kind, NodeId, NodeName};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::{HashMap, HashSet};

/// The first categories of roots, in their order.
const CATEGORIES: [&str; 4] = ["vm", "machine_context", "finalizers", "global_tbl"];

#[derive(Debug, Clone)]
pub struct Object {
    pub kind: Kind,
    pub bytes: u64,
    /// The index of its class.
    pub class: Option<usize>,
    pub name: NodeName,
    /// What it refers to, by index.
    pub edges: Vec<(usize, Edge)>,
}

/// Categories of roots and, after them, objects.
#[derive(Debug, Clone, Default)]
pub struct Heap {
    pub objects: Vec<Object>,
    pub categories: usize,
}

impl Heap {
    pub fn new(categories: usize) -> Self {
        let mut heap = Self { objects: Vec::new(), categories };
        for name in &CATEGORIES[..categories] {
            heap.add(if *name == "global_tbl" { Kind::Anchor } else { Kind::Category }, name, 0);
        }
        heap
    }

    /// Adds an object, and returns its index.
    pub fn add(&mut self, kind: Kind, name: &str, bytes: u64) -> usize {
        let name = NodeName { text: name.to_owned(), ..NodeName::default() };
        self.objects.push(Object { kind, bytes, class: None, name, edges: Vec::new() });
        self.objects.len() - 1
    }

    pub fn refer(&mut self, from: usize, to: usize, edge: Edge) {
        self.objects[from].edges.push((to, edge));
    }

    /// At most so many objects of all kinds, with random references.
    pub fn random(seed: u64, len: usize) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut heap = Self::new(random.random_range(1..=CATEGORIES.len()));
        for _ in 0..random.random_range(1..=len) {
            let kinds = [Kind::Anchor, Kind::Thread, Kind::EndedThread, Kind::Code, Kind::Cache];
            let kind = kinds.get(random.random_range(0..10_usize)).copied().unwrap_or(Kind::Plain);
            let bytes = [random.random_range(0..100), u64::from(u32::MAX) + 7];
            heap.add(kind, "", bytes[usize::from(random.random_ratio(1, 20))]);
        }
        let all = heap.objects.len();
        for _ in 0..all * random.random_range(1..=6_usize) / 2 {
            let (from, to) = (random.random_range(0..all), random.random_range(heap.categories..all));
            heap.refer(from, to, Edge::Unknown);
        }
        heap
    }

    pub fn address(index: usize) -> u64 {
        0x7f00_0000_0010 + 40 * index as u64
    }

    pub fn graph(&self) -> Graph {
        let mut builder = Builder::new();
        let refer = |builder: &mut Builder, index: usize| {
            self.objects[index].edges.iter().for_each(|&(to, _)| builder.edge(Self::address(to)));
        };
        for (index, name) in CATEGORIES.into_iter().enumerate().take(self.categories) {
            builder.category(self.objects[index].kind, name);
            refer(&mut builder, index);
        }
        while let Some((_, address)) = builder.next() {
            let index = Self::index(address);
            let Object { kind, bytes, class, .. } = self.objects[index];
            builder.object(kind, bytes, class.map_or(0, Self::address));
            refer(&mut builder, index);
        }
        builder.finish()
    }

    fn index(address: u64) -> usize {
        ((address - Self::address(0)) / 40) as usize
    }

    /// The node of an object or category; None if nothing reaches it.
    pub fn node(&self, graph: &Graph, index: usize) -> Option<NodeId> {
        if index < self.categories { Some(graph.out(NodeId::ROOT)[index]) } else { graph.node(Self::address(index)) }
    }

    /// The index of a node, which is not the root.
    pub fn index_of(&self, graph: &Graph, node: NodeId) -> usize {
        if node.index() <= self.categories { node.index() - 1 } else { Self::index(graph.address(node)) }
    }

    /// What the graph has: all that the roots reach.
    pub fn in_graph(&self) -> Vec<bool> {
        self.search(None, |_, _| true)
    }

    /// What anchors in the graph refer to.
    pub fn anchored(&self) -> HashSet<usize> {
        let in_graph = self.in_graph();
        let is_anchor = |&index: &usize| in_graph[index] && self.objects[index].kind == Kind::Anchor;
        (0..self.objects.len()).filter(is_anchor).flat_map(|anchor| self.children(anchor)).collect()
    }

    /// What the roots reach if one object is removed. Caches hold nothing, and code nothing that an anchor refers to.
    pub fn reached(&self, removed: Option<usize>) -> Vec<bool> {
        let anchored = self.anchored();
        self.search(removed, |from, to| match self.objects[from].kind {
            Kind::Cache => false,
            Kind::Code => !anchored.contains(&to),
            _ => true,
        })
    }

    fn children(&self, index: usize) -> impl Iterator<Item = usize> {
        self.objects[index].edges.iter().map(|&(to, _)| to)
    }

    /// What the roots reach by the references that count, if one object is removed.
    fn search(&self, removed: Option<usize>, counts: impl Fn(usize, usize) -> bool) -> Vec<bool> {
        let mut reached = vec![false; self.objects.len()];
        let mut left: Vec<usize> = (0..self.categories).collect();
        while let Some(index) = left.pop() {
            if Some(index) == removed || std::mem::replace(&mut reached[index], true) {
                continue;
            }
            left.extend(self.children(index).filter(|&to| counts(index, to)));
        }
        reached
    }

    /// Describes the nodes of a graph of it.
    pub fn describer<'a>(&'a self, graph: &'a Graph) -> Describer<'a> {
        Describer { heap: self, graph, asked: HashMap::new(), edges: HashSet::new() }
    }
}

/// Knows what the heap says.
pub struct Describer<'a> {
    heap: &'a Heap,
    graph: &'a Graph,
    /// How often it was asked for the edges of each node.
    pub asked: HashMap<NodeId, usize>,
    edges: HashSet<(NodeId, NodeId)>,
}

impl Describe for Describer<'_> {
    fn node(&mut self, node: NodeId) -> NodeName {
        assert!(node.index() > self.heap.categories, "a category is described");
        self.heap.objects[self.heap.index_of(self.graph, node)].name.clone()
    }

    fn edges(&mut self, parent: NodeId, children: &[NodeId]) -> Vec<Edge> {
        *self.asked.entry(parent).or_default() += 1;
        let object = &self.heap.objects[self.heap.index_of(self.graph, parent)];
        assert_ne!(object.kind, Kind::Category, "the edges of a category are described");
        let is_new = |&child: &NodeId| self.edges.insert((parent, child));
        assert!(children.iter().all(is_new), "no edge is asked for twice");
        let index = |child| self.heap.index_of(self.graph, child);
        let edge = |child| object.edges.iter().find(|&&(to, _)| to == index(child)).map(|(_, edge)| edge.clone());
        children.iter().map(|&child| edge(child).unwrap()).collect()
    }
}
