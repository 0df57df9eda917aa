//! Whether dominators and retained sizes are right.

use crate::heap::Heap;
use memprofiler_core::graph::{Builder, Dominators, Edge, Graph, Kind, NodeId};
use petgraph::algo::dominators::simple_fast;
use petgraph::graph::DiGraph;
use std::collections::HashSet;

fn bytes(heap: &Heap, reached: &[bool]) -> u64 {
    heap.objects.iter().zip(reached).filter(|&(_, &reached)| reached).map(|(object, _)| object.bytes).sum()
}

#[test]
fn they_are_what_removing_an_object_shows() {
    for seed in 0..4_000 {
        let heap = Heap::random(seed, 12);
        let graph = heap.graph();
        let dominators = Dominators::new(&graph);
        let all = heap.reached(None);
        let without: Vec<Vec<bool>> = (0..heap.objects.len()).map(|index| heap.reached(Some(index))).collect();
        for (index, &reached) in all.iter().enumerate() {
            let Some(node) = heap.node(&graph, index) else { continue };
            let freed =
                if reached { bytes(&heap, &all) - bytes(&heap, &without[index]) } else { heap.objects[index].bytes };
            assert_eq!(dominators.retained(node, &graph), freed, "seed {seed}, object {index}");

            // The nearest one is that which all others dominate, too: the root if there is none.
            let dominates = |other: usize, index: usize| other != index && !without[other][index];
            let count = |index: usize| (0..all.len()).filter(|&other| dominates(other, index)).count();
            let nearest = (0..all.len()).filter(|&other| dominates(other, index)).max_by_key(|&other| count(other));
            let expected = nearest.map_or(Some(NodeId::ROOT), |nearest| heap.node(&graph, nearest));
            assert_eq!(dominators.dominator(node), expected.filter(|_| reached), "seed {seed}, object {index}");

            for (other, _) in all.iter().enumerate().filter(|&(_, &other)| reached && other) {
                let expected = other == index || dominates(other, index);
                let other = heap.node(&graph, other).unwrap();
                assert_eq!(dominators.dominates(other, node), expected, "seed {seed}, {other:?}, object {index}");
            }
        }
        assert_eq!(dominators.dominator(NodeId::ROOT), None);
        assert_eq!(dominators.retained(NodeId::ROOT, &graph), bytes(&heap, &all));
    }
}

/// The dominators that petgraph finds with Cooper, Harvey and Kennedy's algorithm.
fn by_petgraph(graph: &Graph) -> Vec<Option<NodeId>> {
    let mut other = DiGraph::<NodeId, ()>::new();
    let indices: Vec<_> = graph.nodes().map(|node| other.add_node(node)).collect();
    let anchors = graph.nodes().filter(|&node| graph.kind(node) == Kind::Anchor);
    let anchored: HashSet<NodeId> = anchors.flat_map(|anchor| graph.out(anchor).iter().copied()).collect();
    for node in graph.nodes().filter(|&node| graph.kind(node) != Kind::Cache) {
        let counts = |child: &&NodeId| graph.kind(node) != Kind::Code || !anchored.contains(child);
        for child in graph.out(node).iter().filter(counts) {
            other.add_edge(indices[node.index()], indices[child.index()], ());
        }
    }
    let dominators = simple_fast(&other, indices[0]);
    indices.iter().map(|&index| dominators.immediate_dominator(index).map(|index| other[index])).collect()
}

#[test]
fn they_are_those_of_petgraph() {
    for seed in 0..5_000 {
        let heap = Heap::random(seed, [12, 60, 200][seed as usize % 3]);
        let graph = heap.graph();
        let dominators = Dominators::new(&graph);
        let found: Vec<_> = graph.nodes().map(|node| dominators.dominator(node)).collect();
        assert_eq!(found, by_petgraph(&graph), "seed {seed}");
    }
}

/// A list of so many objects, each of which also refers to the first and to the one after the next.
fn list(len: u64) -> Graph {
    let mut builder = Builder::new();
    builder.category(Kind::Category, "vm");
    builder.edge(40);
    while let Some((_, address)) = builder.next() {
        builder.object(Kind::Plain, 40, 0);
        [address + 40, address + 80, 40].into_iter().filter(|&to| to <= 40 * len).for_each(|to| builder.edge(to));
    }
    builder.finish()
}

#[test]
fn a_list_of_a_million_objects_overflows_no_stack() {
    const LEN: u64 = 1_000_000;
    let graph = list(LEN);
    let dominators = Dominators::new(&graph);
    let first = graph.node(40).unwrap();
    assert_eq!(dominators.retained(first, &graph), LEN * 40);
    assert_eq!(dominators.dominator(graph.node(40 * LEN).unwrap()), Some(first));
    assert_eq!(dominators.retained(graph.node(40 * LEN).unwrap(), &graph), 40);
}

#[test]
fn an_object_held_twice_is_dominated_by_what_holds_both() {
    let mut heap = Heap::new(1);
    let [holder, one, other, object] = [1, 2, 4, 8].map(|bytes| heap.add(Kind::Plain, "", bytes));
    for (from, to) in [(0, holder), (holder, one), (holder, other), (one, object), (other, object)] {
        heap.refer(from, to, Edge::Unknown);
    }
    let graph = heap.graph();
    let dominators = Dominators::new(&graph);
    let node = |index| heap.node(&graph, index).unwrap();
    assert_eq!(dominators.dominator(node(object)), Some(node(holder)));
    let retained = [holder, one, other, object].map(|index| dominators.retained(node(index), &graph));
    assert_eq!(retained, [15, 2, 4, 8]);
}

#[test]
fn caches_hold_nothing() {
    let mut heap = Heap::new(1);
    let (cache, class) = (heap.add(Kind::Cache, "", 1), heap.add(Kind::Anchor, "", 2));
    let (object, cached) = (heap.add(Kind::Plain, "", 4), heap.add(Kind::Plain, "", 8));
    for (from, to) in [(0, cache), (0, class), (class, object), (cache, object), (cache, cached)] {
        heap.refer(from, to, Edge::Unknown);
    }
    let graph = heap.graph();
    let dominators = Dominators::new(&graph);
    let node = |index| heap.node(&graph, index).unwrap();
    assert_eq!(dominators.dominator(node(object)), Some(node(class)));
    assert_eq!(dominators.dominator(node(cached)), None);
    assert_eq!([class, cached].map(|index| dominators.retained(node(index), &graph)), [6, 8]);
}
