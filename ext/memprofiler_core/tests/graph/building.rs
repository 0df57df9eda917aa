//! Whether a graph is what the builder was told.

use crate::heap::Heap;
use memprofiler_core::graph::{Builder, Kind, NodeId};

#[test]
fn a_graph_has_what_the_roots_reach() {
    for seed in 0..2_000 {
        let heap = Heap::random(seed, 30);
        let (graph, anchored) = (heap.graph(), heap.anchored());
        assert_eq!(graph.kind(NodeId::ROOT), Kind::Root);
        assert_eq!(graph.out(NodeId::ROOT).len(), heap.categories);
        let (mut nodes, mut edges) = (1, heap.categories);
        for (index, object) in heap.objects.iter().enumerate() {
            let Some(node) = heap.node(&graph, index) else { continue };
            assert_eq!((graph.kind(node), graph.bytes(node)), (object.kind, object.bytes));
            let children: Vec<usize> = graph.out(node).iter().map(|&child| heap.index_of(&graph, child)).collect();
            let mut expected: Vec<usize> = object.edges.iter().map(|&(to, _)| to).collect();
            if object.kind == Kind::Code {
                // What does not count comes last.
                expected.sort_by_key(|to| anchored.contains(to));
            }
            assert_eq!(children, expected);
            (nodes, edges) = (nodes + 1, edges + children.len());
        }
        assert_eq!((graph.len(), graph.edges()), (nodes, edges), "seed {seed}");
        assert_eq!(heap.in_graph().into_iter().filter(|&reached| reached).count(), nodes - 1);
    }
}

#[test]
fn nodes_are_found_by_any_address() {
    let addresses = [1, 8, 0x20, 0x28, 0x30, 0x7fff_ffff_fff8, u64::MAX, u64::MAX - 7];
    let mut builder = Builder::new();
    builder.category(Kind::Category, "vm");
    addresses.iter().for_each(|&address| builder.edge(address));
    let graph = builder.finish();
    for address in addresses {
        assert_eq!(graph.node(address).map(|node| graph.address(node)), Some(address));
    }
    assert_eq!(graph.node(0x38), None);
    assert_eq!(graph.len(), 2 + addresses.len());
}

#[test]
fn a_category_can_be_gone_on_with_until_the_first_object() {
    let mut builder = Builder::new();
    builder.category(Kind::Category, "vm");
    builder.edge(0x1000);
    builder.category(Kind::Anchor, "global_tbl");
    builder.edge(0x1028);
    builder.category(Kind::Category, "vm");
    builder.edge(0x1050);
    builder.edge(0);
    assert!(builder.next().is_some());
    builder.category(Kind::Category, "too late");
    let graph = builder.finish();
    let categories = graph.out(NodeId::ROOT);
    let told = |&node: &NodeId| {
        (graph.category(node), graph.kind(node), graph.out(node).iter().map(|&child| graph.address(child)).collect())
    };
    let expected =
        [(Some("vm"), Kind::Category, vec![0x1000, 0x1050]), (Some("global_tbl"), Kind::Anchor, vec![0x1028])];
    assert_eq!(categories.iter().map(told).collect::<Vec<_>>(), expected);
    assert_eq!(graph.len(), 1 + 2 + 3);
}

#[test]
fn a_class_is_a_node_if_something_refers_to_it() {
    let mut heap = Heap::new(1);
    let (class, hidden) = (heap.add(Kind::Anchor, "Foo", 40), heap.add(Kind::Anchor, "Bar", 40));
    let objects = [Some(class), Some(hidden), None].map(|class| {
        let object = heap.add(Kind::Plain, "", 40);
        heap.objects[object].class = class;
        heap.refer(0, object, Default::default());
        object
    });
    heap.refer(0, class, Default::default());
    let graph = heap.graph();
    let classes = objects.map(|object| graph.class(heap.node(&graph, object).unwrap()));
    assert_eq!(classes, [heap.node(&graph, class), None, None]);
}

#[test]
fn an_object_that_was_not_described_is_plain() {
    let mut builder = Builder::new();
    builder.category(Kind::Category, "vm");
    builder.edge(0x1000);
    builder.edge(0x1028);
    builder.next();
    builder.next();
    builder.object(Kind::Thread, 7, 0);
    let graph = builder.finish();
    let told = [0x1000, 0x1028].map(|address| graph.node(address).map(|node| (graph.kind(node), graph.bytes(node))));
    assert_eq!(told, [Some((Kind::Plain, 0)), Some((Kind::Thread, 7))]);
}
