//! What refers to an object.

use super::NodeId;
use super::bit_set::BitSet;
use super::found::Found;
use crate::hash::Map;

/// How many are found of each object.
const MOST: usize = 64;

/// For each of the nodes those that [hold](super::Graph::held) it, in the order of the graph, which is searched once:
/// but for what lives only through the node itself.
pub fn referrers(
    Found { graph, dominators, .. }: Found<'_>,
    nodes: impl Iterator<Item = NodeId>,
) -> Map<NodeId, Vec<NodeId>> {
    let mut found: Map<NodeId, Vec<NodeId>> = nodes.map(|node| (node, Vec::new())).collect();
    let mut wanted = BitSet::new(graph.len());
    found.keys().for_each(|node| wanted.insert(node.index()));
    if found.is_empty() {
        return found;
    }
    for node in graph.nodes() {
        let held = graph.held(node);
        let children = &graph.edges[held.start as usize..held.end as usize];
        for child in children.iter().filter(|child| wanted.contains(child.index())) {
            let referrers = found.entry(*child).or_default();
            let is_counted = referrers.len() < MOST && referrers.last() != Some(&node);
            if is_counted && !dominators.dominates(*child, node) {
                referrers.push(node);
            }
        }
    }
    found
}
