//! Paths as a programmer would tell them.

use super::{Graph, Kind, NodeId};

/// Shortest paths to all nodes, found in phases. Each goes on from what those before it have reached, along more edges:
///
/// 1. from named classes and the table of global variables, but not through threads that run, code, caches and other
///    roots,
/// 2. also from threads and fibers, and through them,
/// 3. from the root, through everything.
///
/// So what both a constant and a thread's stack refer to is told as held by the constant, and code or caches appear
/// only in paths to what nothing else holds.
#[derive(Debug)]
pub struct Search {
    /// Of each node the one before it on its path; of the first on a path itself.
    before: Vec<NodeId>,
}

const PHASES: [Phase; 3] = [
    Phase {
        begins: |kind| kind == Kind::Anchor,
        passes: |kind| matches!(kind, Kind::Anchor | Kind::Plain | Kind::EndedThread),
    },
    Phase {
        begins: |kind| kind == Kind::Thread,
        passes: |kind| matches!(kind, Kind::Anchor | Kind::Plain | Kind::EndedThread | Kind::Thread),
    },
    Phase { begins: |kind| kind == Kind::Root, passes: |_| true },
];

struct Phase {
    /// Whether paths begin at nodes of that kind.
    begins: fn(Kind) -> bool,
    /// Whether paths pass through nodes of that kind.
    passes: fn(Kind) -> bool,
}

impl Search {
    /// Searches the graph, in time proportional to its size.
    pub fn new(graph: &Graph) -> Self {
        let mut before = vec![NodeId::NONE; graph.len()];
        // Reached, but not passed in the phase.
        let mut waiting: Vec<NodeId> = Vec::new();
        let mut queue = Vec::new();
        for Phase { begins, passes } in PHASES {
            queue.clear();
            (queue, waiting) = waiting.into_iter().partition(|&node| passes(graph.kind(node)));
            for node in graph.nodes().filter(|&node| begins(graph.kind(node))) {
                if before[node.index()] == NodeId::NONE {
                    before[node.index()] = node;
                    queue.push(node);
                }
            }
            let mut next = 0;
            while let Some(&node) = queue.get(next) {
                next += 1;
                for &child in graph.out(node) {
                    if before[child.index()] == NodeId::NONE {
                        before[child.index()] = node;
                        if passes(graph.kind(child)) { &mut queue } else { &mut waiting }.push(child);
                    }
                }
            }
        }
        Self { before }
    }

    /// The node before this one on its path; None if the path begins with it.
    #[inline]
    pub fn before(&self, node: NodeId) -> Option<NodeId> {
        let before = self.before[node.index()];
        (before != node && before != NodeId::NONE).then_some(before)
    }
}
