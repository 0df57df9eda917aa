//! A depth-first search, and semidominators.

use super::bit_set::BitSet;
use super::{Graph, NodeId};

pub const NONE: u32 = u32::MAX;

/// The tree of a depth-first search from the root, along [what nodes hold](Graph::held).
#[derive(Debug)]
pub struct SpanningTree {
    /// The number of each node in the order of the search; [`NONE`] if it was not reached.
    pub numbers: Vec<u32>,
    /// The nodes in that order.
    pub order: Vec<NodeId>,
    /// By number, the number of the node from which the search reached it; the root's is its own.
    pub parents: Vec<u32>,
    /// The edges along which nodes were reached, by index.
    edges: BitSet,
}

impl SpanningTree {
    pub fn new(graph: &Graph) -> Self {
        let mut tree = Self {
            numbers: vec![NONE; graph.len()],
            order: Vec::with_capacity(graph.len()),
            parents: Vec::with_capacity(graph.len()),
            edges: BitSet::new(graph.edges()),
        };
        // The search mostly waits for memory. Bits for all nodes fit into the processor's cache.
        let (mut reached, mut holds) = (BitSet::new(graph.len()), BitSet::new(graph.len()));
        graph.nodes().filter(|&node| !graph.held(node).is_empty()).for_each(|node| holds.insert(node.index()));
        reached.insert(NodeId::ROOT.index());
        tree.add(NodeId::ROOT, 0);
        // Numbers of nodes, and which of their edges were not followed yet.
        let mut path = vec![(0, graph.held(NodeId::ROOT))];
        while let Some((parent, unseen)) = path.last_mut() {
            let Some(edge) = unseen.find(|&edge| !reached.contains(graph.edges[edge as usize].index())) else {
                path.pop();
                continue;
            };
            let child = graph.edges[edge as usize];
            tree.edges.insert(edge as usize);
            reached.insert(child.index());
            let number = tree.add(child, *parent);
            if holds.contains(child.index()) {
                path.push((number, graph.held(child)));
            }
        }
        tree
    }

    fn add(&mut self, node: NodeId, parent: u32) -> u32 {
        let number = self.order.len() as u32;
        self.numbers[node.index()] = number;
        self.order.push(node);
        self.parents.push(parent);
        number
    }

    /// By number, the number of each node's semidominator.
    pub fn semidominators(&self, graph: &Graph) -> Vec<u32> {
        let predecessors = Predecessors::new(graph, self);
        let mut forest = Forest::new(&self.parents);
        let mut semidominators = self.parents.clone();
        for (number, semidominator) in semidominators.iter_mut().enumerate().skip(1).rev() {
            if predecessors.numbers.contains(number) {
                for &predecessor in predecessors.of(self.order[number]) {
                    *semidominator = forest.least(predecessor, number as u32).min(*semidominator);
                }
            }
            forest.vertices[number].label = *semidominator;
        }
        semidominators
    }
}

/// What else holds each node than its parent in the tree.
struct Predecessors {
    /// The numbers of the nodes that have any.
    numbers: BitSet,
    /// Where each node's predecessors end, which is where those of the next node begin.
    ends: Vec<u32>,
    /// The numbers of the predecessors.
    predecessors: Vec<u32>,
}

impl Predecessors {
    fn new(graph: &Graph, tree: &SpanningTree) -> Self {
        // In the order of the graph, in which neighbours are often close to one another.
        let edges = || {
            let reached = graph.nodes().zip(&tree.numbers).filter(|&(_, &number)| number != NONE);
            reached.flat_map(|(node, &number)| {
                let others = graph.held(node).map(|edge| edge as usize).filter(|&edge| !tree.edges.contains(edge));
                others.map(move |edge| (number, graph.edges[edge]))
            })
        };
        let (mut numbers, mut ends) = (BitSet::new(tree.order.len()), vec![0_u32; graph.len()]);
        edges().for_each(|(_, child)| ends[child.index()] += 1);
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        let mut predecessors = vec![0; sum as usize];
        edges().for_each(|(number, child)| {
            numbers.insert(tree.numbers[child.index()] as usize);
            let end = &mut ends[child.index()];
            predecessors[*end as usize] = number;
            *end += 1;
        });
        Self { numbers, ends, predecessors }
    }

    #[inline]
    fn of(&self, node: NodeId) -> &[u32] {
        let start = node.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.predecessors[start as usize..self.ends[node.index()] as usize]
    }
}

/// The part of the tree whose semidominators are known: all numbers greater than the one whose turn it is.
struct Forest {
    vertices: Vec<Vertex>,
    path: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Vertex {
    /// The nearest ancestor that is not on its compressed path.
    ancestor: u32,
    /// The least semidominator on its compressed path; itself if its semidominator is not known.
    label: u32,
}

impl Forest {
    fn new(parents: &[u32]) -> Self {
        let vertices = parents.iter().zip(0..).map(|(&ancestor, label)| Vertex { ancestor, label }).collect();
        Self { vertices, path: Vec::new() }
    }

    /// The least semidominator on the path of the tree to `node`, as far as numbers are greater than `number`; `node`
    /// if there is none.
    #[inline]
    fn least(&mut self, node: u32, number: u32) -> u32 {
        let vertex = self.vertices[node as usize];
        if vertex.ancestor > number { self.compress(node, vertex, number) } else { vertex.label }
    }

    fn compress(&mut self, mut node: u32, mut vertex: Vertex, number: u32) -> u32 {
        while vertex.ancestor > number {
            self.path.push(node);
            node = vertex.ancestor;
            vertex = self.vertices[node as usize];
        }
        while let Some(below) = self.path.pop() {
            let below = &mut self.vertices[below as usize];
            vertex.label = vertex.label.min(below.label);
            *below = vertex;
        }
        vertex.label
    }
}
