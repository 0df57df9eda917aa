//! Other references to what a chain holds.

use super::found::Found;
use super::groups::Group;
use super::referrers::referrers;
use super::trails::Trails;
use super::{Describe, Kind, NodeId};
use crate::hash::Map;

/// How many are told.
const MOST: usize = 3;

/// For each contested node of the groups, on one line each, the other chains that lead to it: those from named classes
/// first, then those from threads.
pub fn others<'g, D: Describe>(
    found: Found<'_>,
    trails: &mut Trails<'_, D>,
    groups: impl Iterator<Item = &'g Group>,
) -> Map<NodeId, Vec<String>> {
    let mut referrers = referrers(found, groups.filter_map(|group| group.contest.last));
    for (&node, referrers) in &mut referrers {
        let place = trails.paths.place(node);
        referrers.retain(|&referrer| !trails.paths.backwards(referrer).any(|before| before == place));
        referrers
            .sort_by_cached_key(|&referrer| trails.paths.backwards(referrer).last().map(|first| rank(found, first)));
    }
    let mut edges = trails.edges(referrers.values().flatten().copied());
    edges.extend(referrers.iter().flat_map(|(&node, all)| all.iter().map(move |&referrer| (referrer, node))));
    trails.names.learn(edges);
    referrers.into_iter().map(|(node, referrers)| (node, tell(trails, node, &referrers))).collect()
}

fn rank(found: Found<'_>, first: NodeId) -> usize {
    match found.graph.kind(first) {
        Kind::Anchor => 0,
        Kind::Thread => 1,
        _ => 2,
    }
}

fn tell<D: Describe>(trails: &mut Trails<'_, D>, node: NodeId, referrers: &[NodeId]) -> Vec<String> {
    let told = trails.chain(node);
    let mut phrases = vec![trails.phrase(&told)];
    for &referrer in referrers {
        let trail = trails.of(referrer);
        let link = trails.extend(trail, Some(referrer), node).link;
        let phrase = trails.phrase(&trails.links.chain(link));
        if !phrases.contains(&phrase) {
            phrases.push(phrase);
        }
        if phrases.len() > MOST {
            break;
        }
    }
    phrases.split_off(1)
}
