//! Whether paths are the shortest ones of their phase.

use crate::heap::Heap;
use memprofiler_core::graph::{Edge, Graph, Kind, NodeId, Search};
use std::collections::HashMap;

/// The distance of each node from where its path begins or goes on from an earlier phase, with that phase, by following
/// all edges again and again.
fn distances(graph: &Graph) -> HashMap<NodeId, (usize, usize)> {
    let begins = [Kind::Anchor, Kind::Thread, Kind::Root];
    let passes = |phase: usize, node: NodeId| match graph.kind(node) {
        Kind::Anchor | Kind::Plain | Kind::EndedThread => true,
        Kind::Thread => phase >= 1,
        _ => phase == 2,
    };
    let mut found: HashMap<NodeId, (usize, usize)> = HashMap::new();
    for (phase, begin) in begins.into_iter().enumerate() {
        // What an earlier phase reached but did not pass.
        let frontier: Vec<NodeId> =
            found.keys().copied().filter(|&node| passes(phase, node) && !passes(phase - 1, node)).collect();
        let mut distances: HashMap<NodeId, usize> = frontier.into_iter().map(|node| (node, 0)).collect();
        let new = graph.nodes().filter(|&node| graph.kind(node) == begin && !found.contains_key(&node));
        distances.extend(new.map(|node| (node, 0)));
        loop {
            let before = distances.clone();
            for node in graph.nodes().filter(|&node| passes(phase, node)) {
                let Some(&distance) = distances.get(&node) else { continue };
                for &child in graph.out(node).iter().filter(|child| !found.contains_key(child)) {
                    let known = distances.entry(child).or_insert(usize::MAX);
                    *known = (*known).min(distance + 1);
                }
            }
            if distances == before {
                break;
            }
        }
        distances.into_iter().for_each(|(node, distance)| {
            found.entry(node).or_insert((phase, distance));
        });
    }
    found
}

#[test]
fn paths_are_the_shortest_of_the_first_phase_that_finds_any() {
    for seed in 0..4_000 {
        let graph = Heap::random(seed, 12).graph();
        let (search, distances) = (Search::new(&graph), distances(&graph));
        assert_eq!(distances.len(), graph.len(), "seed {seed}");
        for node in graph.nodes() {
            let (phase, distance) = distances[&node];
            match search.before(node) {
                None => assert_eq!(distance, 0, "seed {seed}, {node:?}"),
                Some(before) => {
                    assert!(graph.out(before).contains(&node), "seed {seed}, {node:?}");
                    let (earlier, least) = distances[&before];
                    let least = if earlier == phase { least } else { 0 };
                    assert!(earlier <= phase);
                    assert_eq!(distance, least + 1, "seed {seed}, {node:?}");
                }
            }
        }
    }
}

/// The indices of a path, from its beginning.
fn path(heap: &Heap, graph: &Graph, index: usize) -> Vec<usize> {
    let search = Search::new(graph);
    let nodes = std::iter::successors(heap.node(graph, index), |&node| search.before(node));
    let mut path: Vec<usize> =
        nodes.filter(|&node| node != NodeId::ROOT).map(|node| heap.index_of(graph, node)).collect();
    path.reverse();
    path
}

fn connect(heap: &mut Heap, edges: &[(usize, usize)]) {
    edges.iter().for_each(|&(from, to)| heap.refer(from, to, Edge::Unknown));
}

#[test]
fn a_named_class_explains_more_than_a_thread_or_code_even_if_it_is_farther_away() {
    let mut heap = Heap::new(1);
    let [class, hash, array] = [Kind::Anchor, Kind::Plain, Kind::Plain].map(|kind| heap.add(kind, "", 1));
    let [thread, code, object] = [Kind::Thread, Kind::Code, Kind::Plain].map(|kind| heap.add(kind, "", 1));
    connect(&mut heap, &[(0, object), (0, thread), (0, code), (0, class), (thread, object), (code, object)]);
    connect(&mut heap, &[(class, hash), (hash, array), (array, object)]);
    let graph = heap.graph();
    assert_eq!(path(&heap, &graph, object), [class, hash, array, object]);
}

#[test]
fn a_thread_explains_more_than_code_or_the_machine_stack() {
    let mut heap = Heap::new(2);
    let [class, thread, code, hash, object] =
        [Kind::Anchor, Kind::Thread, Kind::Code, Kind::Plain, Kind::Plain].map(|kind| heap.add(kind, "", 1));
    connect(&mut heap, &[(0, class), (class, thread), (thread, hash), (hash, object)]);
    connect(&mut heap, &[(class, code), (code, object), (1, object)]);
    let graph = heap.graph();
    assert_eq!(path(&heap, &graph, object), [class, thread, hash, object]);
}

#[test]
fn what_nothing_else_holds_is_told_from_the_root() {
    let mut heap = Heap::new(2);
    let object = heap.add(Kind::Plain, "", 1);
    connect(&mut heap, &[(1, object)]);
    let graph = heap.graph();
    assert_eq!(path(&heap, &graph, object), [1, object]);
}
