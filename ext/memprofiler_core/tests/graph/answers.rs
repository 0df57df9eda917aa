//! Whether an answer adds up, and survives being written.

use crate::heap::Heap;
use crate::program::{GLOBALS, Program, VM, ivar};
use memprofiler_core::graph::{Answer, Class, Edge, Kind, Question, Sample, SiteName, answer};
use memprofiler_core::window_group::WindowGroup;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

/// A random heap, with samples of objects in it and of some that are not.
fn random(seed: u64) -> (Heap, Vec<Sample>) {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut heap = Heap::random(seed, 40);
    let edges = [Edge::Unknown, Edge::Element, Edge::Singleton, ivar("@a"), Edge::Global("$a".to_owned())];
    for index in 0..heap.objects.len() {
        let class = random.random_range(0..heap.objects.len());
        let object = &mut heap.objects[index];
        object.class = Some(class).filter(|&class| class >= heap.categories && class % 5 != 0);
        object.name.text = ["Foo", "Bar", "(hidden)"][index % 3].to_owned();
        object.edges.iter_mut().for_each(|(to, edge)| *edge = edges[(index + *to) % edges.len()].clone());
    }
    let sample = |_| Sample {
        address: Heap::address(random.random_range(heap.categories..heap.objects.len() + 3)),
        site: random.random_range(0..5),
        class: None,
        weight: random.random_range(1..20_u32).into(),
        bytes: random.random_range(40..100),
        window: random.random_ratio(1, 3).then(|| WindowGroup::new(random.random_range(0..16))),
    };
    let samples = (0..30).map(sample).collect();
    (heap, samples)
}

fn sites() -> Vec<SiteName> {
    (0..5).map(|line| SiteName { name: format!("a.rb:{line}"), ..SiteName::default() }).collect()
}

fn ask(heap: &Heap, samples: &[Sample], limit: usize) -> Answer {
    let graph = heap.graph();
    let mut describer = heap.describer(&graph);
    let question = Question { limit, ..Question::default() };
    let answer = answer(&graph, samples, &sites(), &question, &mut describer);
    assert!(describer.asked.values().all(|&times| times <= 2), "a parent is asked once, and for other references");
    answer
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-6
}

#[test]
fn figures_add_up() {
    for seed in 0..3_000 {
        let (heap, samples) = random(seed);
        let (answer, graph) = (ask(&heap, &samples, 10), heap.graph());
        let reached = |sample: &&Sample| graph.node(sample.address).is_some();
        let bytes = |sample: &Sample| sample.weight * sample.bytes as f64;
        let all: f64 = samples.iter().filter(reached).map(bytes).sum();
        assert_eq!(answer.unreachable.samples as usize, samples.iter().filter(|sample| !reached(sample)).count());
        assert!(close(answer.paths.paths.iter().map(|path| path.bytes).sum(), all), "seed {seed}");
        for site in &answer.sites {
            let of_site = || samples.iter().filter(|sample| site.name == format!("a.rb:{}", sample.site));
            let expected: f64 = of_site().map(bytes).sum();
            assert_eq!((site.samples as usize, site.bytes.value), (of_site().count(), expected.round() as i64));
            assert!(site.bytes.low <= expected && expected <= site.bytes.high);
            let held: f64 = site.holders.iter().map(|holder| holder.bytes).sum();
            assert!(close(held + site.unreachable_bytes, expected), "seed {seed}: {site:#?}");
            let shares: f64 = site.holders.iter().map(|holder| holder.share).sum();
            assert!(close(shares, held / expected) && shares <= 1.0 + 1e-9);
            assert!(site.holders.windows(2).all(|pair| pair[0].bytes >= pair[1].bytes));
            assert!(site.holders.iter().all(|holder| !holder.chain.is_empty() && !holder.phrase.is_empty()));
        }
    }
}

#[test]
fn the_whole_heap_is_counted() {
    let mut program = Program::new();
    let class = program.class("Foo");
    let array = program.object("Array", class, ivar("@all"));
    program.strings(5, array, &Edge::Element);
    let answer = program.answer();
    // The classes Class, Foo, Array and String have no bytes.
    assert_eq!((answer.objects, answer.bytes, answer.samples), (4 + 6, 6 * 40, 5));
    assert_eq!(answer.edges, 4 + 1 + 5);
    assert_eq!(answer.greatest_weight, 10.0);
}

#[test]
fn sites_with_the_most_bytes_come_first() {
    let mut program = Program::new();
    for (site, count) in [(4, 2), (7, 5), (2, 3), (9, 1)] {
        let strings = program.strings(count, GLOBALS, &Edge::Global("$a".to_owned()));
        program.samples.truncate(program.samples.len() - count);
        strings.iter().for_each(|&string| program.sample(string, site));
    }
    let answer = program.answer_to(&Question { limit: 3, ..Question::default() });
    let names: Vec<&str> = answer.sites.iter().map(|site| &*site.name).collect();
    assert_eq!(names, ["a.rb:8", "a.rb:3", "a.rb:5"]);
    assert_eq!((answer.sites[0].line, answer.paths.paths.len()), (Some(8), 4));
}

#[test]
fn classes_are_named() {
    let mut program = Program::new();
    for (class, count) in [("Array", 1), ("Hash", 3), ("Foo", 2), ("Bar", 4)] {
        for _ in 0..count {
            let object = program.object(class, GLOBALS, Edge::Unknown);
            program.sample(object, 0);
        }
    }
    let classes = program.answer().sites.swap_remove(0).classes;
    let expected = [("Bar", 1600.0), ("Hash", 1200.0), ("Foo", 800.0)];
    assert_eq!(classes, expected.map(|(name, bytes)| Class { name: name.to_owned(), bytes }));
}

#[test]
fn a_class_that_a_sample_has_is_told() {
    let mut program = Program::new();
    for number in 0..2 {
        let code = program.internal(Kind::Code, &format!("(code of m{number})"), VM, Edge::Unknown);
        program.sample(code, 0);
        program.samples.last_mut().unwrap().class = Some("(IMEMO)".into());
    }
    let answer = program.answer();
    assert_eq!(answer.sites[0].classes, [Class { name: "(IMEMO)".to_owned(), bytes: 800.0 }]);
    assert!(answer.paths.paths.iter().all(|path| path.class == "(IMEMO)"));
}

#[test]
fn classes_include_those_of_what_nothing_reaches() {
    let mut program = Program::new();
    program.strings(1, GLOBALS, &Edge::Global("$a".to_owned()));
    for class in [Some("Array".into()), None] {
        let garbage = program.heap.add(Kind::Plain, "Array", 80);
        program.sample(garbage, 0);
        program.samples.last_mut().unwrap().class = class;
    }
    let classes = program.answer().sites.swap_remove(0).classes;
    let expected = [("(no class)", 800.0), ("Array", 800.0), ("String", 400.0)];
    assert_eq!(classes, expected.map(|(name, bytes)| Class { name: name.to_owned(), bytes }));
}

#[test]
fn what_nothing_reaches_is_counted_apart() {
    let mut program = Program::new();
    program.strings(3, GLOBALS, &Edge::Global("$a".to_owned()));
    let garbage = program.heap.add(Kind::Plain, "String", 40);
    program.sample(garbage, 0);
    let answer = program.answer();
    assert_eq!((answer.unreachable.samples, answer.unreachable.objects, answer.unreachable.bytes), (1, 10.0, 400.0));
    let site = &answer.sites[0];
    assert_eq!((site.samples, site.bytes.value, site.unreachable_bytes), (4, 1600, 400.0));
    assert_eq!(site.holders.iter().map(|holder| holder.share).collect::<Vec<_>>(), [0.75]);
}

#[test]
fn holders_that_are_not_told_are_counted() {
    let mut program = Program::new();
    for number in 0..13 {
        program.strings(if number < 10 { 2 } else { 1 }, GLOBALS, &Edge::Global(format!("$a{number}")));
    }
    let site = &program.answer().sites[0];
    assert_eq!((site.holders.len(), site.other_holders, site.other_holders_bytes), (10, 3, 1200.0));
    let shares: f64 = site.holders.iter().map(|holder| holder.share).sum();
    assert!(close(shares + site.other_holders_bytes / site.bytes.value as f64, 1.0));
}

#[test]
fn an_answer_is_the_same_each_time() {
    for seed in 0..200 {
        let (heap, samples) = random(seed);
        let json = || serde_json::to_string(&ask(&heap, &samples, 10)).unwrap();
        assert_eq!(json(), json(), "seed {seed}");
    }
}

/// Whether two values are equal, but for the last digits of fractions.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        _ => {
            one == other
                || one.as_f64().zip(other.as_f64()).is_some_and(|(one, other)| (one / other - 1.0).abs() < 1e-12)
        }
    }
}

#[test]
fn an_answer_survives_json() {
    for seed in 0..500 {
        let (heap, samples) = random(seed);
        let answer = ask(&heap, &samples, 3);
        let read: Answer = serde_json::from_slice(&serde_json::to_vec(&answer).unwrap()).unwrap();
        let [read, answer] = [read, answer].map(|answer| serde_json::to_value(answer).unwrap());
        assert!(same(&read, &answer), "seed {seed}");
    }
}

#[test]
fn json_has_the_names_that_ruby_reads() {
    let mut program = Program::new();
    let class = program.class("Foo");
    let hash = program.object("Hash", class, ivar("@all"));
    program.heap.objects[hash].name.count = Some(2);
    program.strings(2, hash, &Edge::Value(None));
    let mut json = serde_json::to_value(program.answer()).unwrap();
    let link = json["sites"][0]["holders"][0]["chain"][1].take();
    let expected = json!({
        "text": "Hash", "edge": {"instance_variable": "@all"}, "phrase": "Foo.@all → Hash", "count": 2, "retained": 120,
        "kind": "plain", "file": null, "line": null
    });
    assert_eq!(link, expected);
    let example = &json["sites"][0]["holders"][0]["example"][0];
    assert_eq!(example["edge"], json!({"value": null}));
    let estimate = json!({
        "value": 20, "low": 0.0, "high": 20.0 + 1.96 * 180_f64.sqrt(), "samples": 2.0, "variance": 180.0,
        "windows": null
    });
    assert_eq!(json["sites"][0]["objects"], estimate);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(&json), "bytes edges greatest_weight largest objects paths samples sites unreachable");
    let of_site = "bytes classes file function holders line name objects other_holders other_holders_bytes samples \
                   unreachable_bytes";
    assert_eq!(keys(&json["sites"][0]), of_site);
    let of_holder = "alike also bytes chain example exclusive folded objects phrase samples share";
    assert_eq!(keys(&json["sites"][0]["holders"][0]), of_holder);
    assert_eq!(keys(&json["largest"][0]), "alike bytes chain folded phrase");
    assert_eq!(keys(&json["paths"]), "frames nodes paths");
    assert_eq!(keys(&json["paths"]["paths"][0]), "bytes class end objects samples site window");
}

#[test]
fn retained_sizes_are_exact() {
    for seed in 0..500 {
        let (heap, samples) = random(seed);
        let graph = heap.graph();
        let dominators = memprofiler_core::graph::Dominators::new(&graph);
        let possible: Vec<u64> = graph.nodes().map(|node| dominators.retained(node, &graph)).collect();
        for holder in ask(&heap, &samples, 10).sites.iter().flat_map(|site| &site.holders) {
            assert!(holder.chain.iter().chain(&holder.example).all(|link| possible.contains(&link.retained)));
        }
    }
}

#[test]
fn a_million_objects_in_a_list_are_no_problem() {
    const LENGTH: usize = 1_000_000;
    let mut heap = Heap::new(1);
    let class = heap.add(Kind::Anchor, "Node", 40);
    heap.refer(VM, class, Edge::Unknown);
    let mut before = class;
    for _ in 0..LENGTH {
        let node = heap.add(Kind::Plain, "Node", 40);
        heap.objects[node].class = Some(class);
        heap.refer(before, node, ivar("@next"));
        before = node;
    }
    let sample = |step: usize| Sample {
        address: Heap::address(class + 100 * step),
        site: 0,
        class: None,
        weight: 100.0,
        bytes: 40,
        window: None,
    };
    let samples: Vec<Sample> = (1..=LENGTH / 100).map(sample).collect();
    let graph = heap.graph();
    let mut describer = heap.describer(&graph);
    let answer = answer(&graph, &samples, &sites(), &Question::default(), &mut describer);
    let holder = &answer.sites[0].holders[0];
    assert_eq!((&*holder.phrase, holder.share), ("Node.@next → Node", 1.0));
    assert_eq!(holder.chain[1].retained, 40 * LENGTH as u64);
    assert!(answer.paths.nodes.len() <= 2);
    assert!(describer.asked.len() < 20, "what repeats is not described");
}
