//! Which objects are told to keep the most memory alive.

use crate::program::{MACHINE_STACK, Program, constant, ivar, local};
use memprofiler_core::graph::{Edge, Kind, Question};

/// What is told, and its bytes.
fn told(program: &Program) -> Vec<(String, u64)> {
    program.answer().largest.into_iter().map(|each| (each.phrase, each.bytes)).collect()
}

fn expected<const N: usize>(told: [(&str, u64); N]) -> Vec<(String, u64)> {
    told.map(|(phrase, bytes)| (phrase.to_owned(), bytes)).to_vec()
}

/// Objects of 40 bytes, each held by `from` alone.
fn objects(program: &mut Program, count: usize, from: usize, edge: &Edge) {
    for _ in 0..count {
        program.object("Entry", from, edge.clone());
    }
}

#[test]
fn a_single_object_that_nobody_sampled() {
    let mut program = Program::new();
    let class = program.class("Latency");
    let log = program.object("Log", class, constant("LOG"));
    let array = program.object("Array", log, ivar("@times"));
    program.heap.objects[array].bytes = 40_000_000;
    program.heap.objects[array].name.count = Some(5_000_000);
    let answer = program.answer();
    assert_eq!((answer.samples, answer.largest.len()), (0, 1));
    assert_eq!(answer.largest[0].phrase, "Latency::LOG (constant, /app/a.rb:2) → Log.@times → Array (5,000,000)");
    assert_eq!((answer.largest[0].bytes, answer.largest[0].alike), (40_000_000, 1));
    assert_eq!(answer.largest[0].chain.last().map(|link| link.retained), Some(40_000_000));
}

#[test]
fn a_collection_with_what_only_it_holds() {
    let mut program = Program::new();
    let class = program.class("Foo");
    let hash = program.object("Hash", class, ivar("@all"));
    objects(&mut program, 50, hash, &Edge::Value(None));
    let shared = program.object("Array", class, ivar("@some"));
    program.heap.refer(hash, shared, Edge::Key);
    assert_eq!(told(&program), expected([("Foo.@all → Hash", 40 * 51), ("Foo.@some → Array", 40)]));
}

#[test]
fn a_collection_of_collections_as_a_whole() {
    let mut program = Program::new();
    let class = program.class("Foo");
    let hash = program.object("Hash", class, ivar("@all"));
    for _ in 0..4 {
        let array = program.object("Array", hash, Edge::Value(None));
        objects(&mut program, 10, array, &Edge::Element);
    }
    assert_eq!(told(&program), expected([("Foo.@all → Hash", 40 * 45)]));
}

#[test]
fn what_has_more_than_half_of_it() {
    let mut program = Program::new();
    let class = program.class("Foo");
    let hash = program.object("Hash", class, ivar("@all"));
    objects(&mut program, 20, hash, &Edge::Value(None));
    let large = program.object("Array", hash, Edge::Value(Some("large".to_owned())));
    objects(&mut program, 80, large, &Edge::Element);
    assert_eq!(told(&program)[0], ("Foo.@all → Hash[:large] → Array".to_owned(), 40 * 81));
}

#[test]
fn a_list_from_its_beginning() {
    let mut program = Program::new();
    let class = program.class("Foo");
    let mut node = program.object("List", class, ivar("@first"));
    for _ in 0..1000 {
        node = program.object("List", node, ivar("@next"));
    }
    assert_eq!(told(&program), expected([("Foo.@first → List", 40 * 1001)]));
}

#[test]
fn a_class_with_what_it_has_besides() {
    let mut program = Program::new();
    let class = program.class("Foo");
    for number in 0..200 {
        program.of_kind(Kind::Code, "Method", &format!("t{number}"), class, Edge::Method(format!("t{number}")));
    }
    for name in ["@one", "@other"] {
        let array = program.object("Array", class, ivar(name));
        objects(&mut program, 9, array, &Edge::Element);
    }
    assert_eq!(told(&program)[0], ("Foo".to_owned(), 40 * 200));
    assert_eq!(program.answer().largest[0].chain[0].retained, 40 * 220);
}

#[test]
fn alike_ones_together() {
    let mut program = Program::new();
    for (number, count) in [(1, 10), (2, 30), (3, 20)] {
        let name = format!("Thread \"worker {number}\"");
        let thread = program.of_kind(Kind::Thread, "Thread", &name, MACHINE_STACK, Edge::Unknown);
        let cache = program.object("Array", thread, local("cache"));
        objects(&mut program, count, cache, &Edge::Element);
    }
    let largest = &program.answer().largest[0];
    assert_eq!((largest.alike, largest.bytes), (3, 40 * 63));
    assert_eq!(largest.phrase, "Thread \"worker 2\" local variable cache → Array");
}

#[test]
fn only_as_many_as_asked_for() {
    let mut program = Program::new();
    let class = program.class("Foo");
    for number in 0..8 {
        program.object("Array", class, ivar(&format!("@a{number}")));
    }
    for largest in [0, 3] {
        let answer = program.answer_to(&Question { largest, ..Question::default() });
        assert_eq!(answer.largest.len(), largest);
    }
}

#[test]
fn nothing_that_is_small_beside_the_rest() {
    let mut program = Program::new();
    let class = program.class("Foo");
    let array = program.object("Array", class, ivar("@large"));
    program.heap.objects[array].bytes = 40_000;
    program.object("Array", class, ivar("@small"));
    assert_eq!(told(&program), expected([("Foo.@large → Array", 40_000)]));
}
