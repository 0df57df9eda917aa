//! Whether chains end where objects accumulate.

use crate::program::{GLOBALS, Program, VM, constant, ivar, local};
use memprofiler_core::graph::{Edge, Kind};

/// A Hash with so many entries, each with a sampled String.
fn entries(program: &mut Program, from: usize, edge: Edge, count: usize) -> usize {
    let hash = program.object("Hash", from, edge);
    for _ in 0..count {
        let entry = program.object("Entry", hash, Edge::Value(None));
        program.strings(1, entry, &ivar("@text"));
    }
    hash
}

/// What the holders say, and how many samples each has.
fn told(program: &Program) -> Vec<(String, u64)> {
    program.holders().into_iter().map(|holder| (holder.phrase, holder.samples)).collect()
}

fn expected<const N: usize>(told: [(&str, u64); N]) -> Vec<(String, u64)> {
    told.map(|(phrase, samples)| (phrase.to_owned(), samples)).to_vec()
}

#[test]
fn at_a_hash_of_arrays() {
    let mut program = Program::new();
    let class = program.class("Foo");
    let hash = program.object("Hash", class, ivar("@all"));
    for _ in 0..10 {
        let array = program.object("Array", hash, Edge::Value(None));
        program.strings(5, array, &Edge::Element);
    }
    assert_eq!(told(&program), expected([("Foo.@all → Hash", 50)]));
}

#[test]
fn not_at_one_of_few_objects() {
    for count in [2, 3] {
        let mut program = Program::new();
        let class = program.class("Foo");
        entries(&mut program, class, ivar("@all"), count);
        assert_eq!(told(&program), expected([("Foo.@all → Hash", count as u64)]));
    }
}

#[test]
fn at_one_of_the_values_of_a_hash_if_that_has_most() {
    for (large, small) in [(70, 30), (30, 70)] {
        let mut program = Program::new();
        let class = program.class("Foo");
        let hash = entries(&mut program, class, ivar("@all"), small);
        let array = program.object("Array", hash, Edge::Value(Some("large".to_owned())));
        program.strings(large, array, &Edge::Element);
        let apart = expected([("Foo.@all → Hash[:large] → Array", 70), ("Foo.@all → Hash", 30)]);
        let together = expected([("Foo.@all → Hash", 100)]);
        assert_eq!(told(&program), if large > small { apart } else { together });
    }
}

#[test]
fn at_two_variables_of_an_object() {
    let mut program = Program::new();
    let class = program.class("Foo");
    let foo = program.object("Foo", class, constant("FOO"));
    entries(&mut program, foo, ivar("@one"), 60);
    entries(&mut program, foo, ivar("@other"), 40);
    let foo = "Foo::FOO (constant, /app/a.rb:2) → Foo";
    let (one, other) = (format!("{foo}.@one → Hash"), format!("{foo}.@other → Hash"));
    assert_eq!(told(&program), expected([(&one, 60), (&other, 40)]));
}

#[test]
fn in_a_class_below_another() {
    let mut program = Program::new();
    let outer = program.class("Outer");
    let inner = program.of_kind(Kind::Anchor, "Class", "Outer::Inner", outer, constant("Inner"));
    entries(&mut program, outer, ivar("@all"), 90);
    entries(&mut program, inner, ivar("@all"), 10);
    assert_eq!(told(&program), expected([("Outer.@all → Hash", 90), ("Outer::Inner.@all → Hash", 10)]));
}

#[test]
fn in_classes_that_only_parts_of_the_vm_connect_with_others() {
    let mut program = Program::new();
    let outer = program.class("Outer");
    for number in 0..3 {
        for _ in 0..10 {
            let part = program.internal(Kind::Plain, "", outer, Edge::Unknown);
            let name = format!("Class{number}");
            let class = program.of_kind(Kind::Anchor, "Class", &name, part, Edge::Unknown);
            let list = program.object("Array", class, ivar("@all"));
            program.strings(3 - number, list, &Edge::Element);
        }
    }
    let all = [("Class0.@all → Array", 30), ("Class1.@all → Array", 20), ("Class2.@all → Array", 10)];
    assert_eq!(told(&program), expected(all));
}

#[test]
fn in_many_threads() {
    let mut program = Program::new();
    for number in 0..30 {
        let name = format!("Thread \"puma {number:03}\"");
        let thread = program.of_kind(Kind::Thread, "Thread", &name, VM, Edge::Unknown);
        let count = if number == 7 { 5 } else { 4 };
        entries(&mut program, thread, Edge::ThreadLocal("cache".to_owned()), count);
    }
    let holder = program.holder();
    assert_eq!((&*holder.phrase, holder.alike), ("Thread \"puma 007\" local cache → Hash", 30));
}

#[test]
fn in_many_global_variables() {
    let mut program = Program::new();
    for count in 2..8 {
        entries(&mut program, GLOBALS, Edge::Global(format!("$of_{count}")), count);
    }
    let all = ["$of_7 → Hash", "$of_6 → Hash", "$of_5 → Hash", "$of_4 → Hash", "$of_3 → Hash", "$of_2 → Hash"];
    assert_eq!(told(&program), (2..8).rev().zip(all).map(|(count, told)| (told.to_owned(), count)).collect::<Vec<_>>());
}

#[test]
fn at_the_root_of_a_tree() {
    let mut program = Program::new();
    let class = program.class("Tree");
    let mut nodes = vec![program.object("Node", class, ivar("@root"))];
    for _ in 0..6 {
        let below = nodes.iter().flat_map(|&node| [(node, "@left"), (node, "@right")]);
        let below: Vec<_> = below.collect();
        nodes = below.into_iter().map(|(node, name)| program.object("Node", node, ivar(name))).collect();
        nodes.clone().into_iter().for_each(|node| drop(program.strings(1, node, &ivar("@text"))));
    }
    assert_eq!(told(&program), expected([("Tree.@root → Node", 126)]));
}

#[test]
fn not_at_one_of_nested_hashes_that_say_the_same() {
    let mut program = Program::new();
    let class = program.class("Foo");
    let outer = program.object("Hash", class, ivar("@all"));
    let middle = program.object("Hash", outer, Edge::Value(None));
    let inner = entries(&mut program, middle, Edge::Value(None), 20);
    program.heap.objects[inner].name.count = Some(20);
    let holder = program.holder();
    assert_eq!(holder.phrase, "Foo.@all → Hash → values → Hash");
    let last = holder.chain.last().unwrap();
    assert_eq!((last.count, last.retained), (Some(20), 41 * 40));
    assert_eq!(holder.folded.as_deref(), Some("1 repeated step"));
}

#[test]
fn beside_a_large_object_that_holds_them() {
    let mut program = Program::new();
    let class = program.class("Foo");
    let thread = program.of_kind(Kind::Thread, "Thread", "Thread \"a\"", class, constant("WORKER"));
    program.heap.refer(VM, thread, Edge::Unknown);
    program.heap.objects[thread].bytes = 1_000_000;
    program.sample(thread, 0);
    let rows = program.object("Array", thread, local("rows"));
    program.strings(20, rows, &Edge::Element);
    let worker = "Foo::WORKER (constant, /app/a.rb:2) → Thread \"a\"";
    assert_eq!(told(&program), expected([(worker, 1), (&format!("{worker} local variable rows → Array"), 20)]));
    assert!(program.holders().iter().all(|holder| holder.exclusive), "that the VM holds a thread, too, says nothing");
}
