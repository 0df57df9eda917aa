//! Times the search for who holds what, on made-up heaps of 1 and 5 million objects:
//!
//! ```text
//! cargo run --release -p memprofiler_core --example graph_cost [OBJECTS...]
//! ```
//!
//! For each step it prints the CPU time and that per object, and at the end the greatest memory that was used at once.
//! The heap has no content: what an object refers to is computed from its number.

use memprofiler_core::graph::{
    Builder, Describe, Dominators, Edge, Graph, Kind, NodeId, NodeName, Question, Sample, Search, SiteName, answer,
};
use std::error::Error;

/// Ruby's slots and pages, the first page's address, and what a page keeps for its header.
const SLOT: u64 = 40;
const PAGE: u64 = 1 << 16;
const FIRST_PAGE: u64 = 0x7f00_0000_0000;
const HEADER: u64 = 16;
const SLOTS: u64 = (PAGE - HEADER) / SLOT;

/// A record is an object with two strings and an array of six more objects; a container has a thousand records.
const RECORD: u64 = 10;
const RECORDS: u64 = 1_000;

const SAMPLES: u64 = 20_000;

fn address(number: u64) -> u64 {
    FIRST_PAGE + number / SLOTS * PAGE + HEADER + number % SLOTS * SLOT
}

fn number(address: u64) -> u64 {
    (address - FIRST_PAGE) / PAGE * SLOTS + (address % PAGE - HEADER) / SLOT
}

/// A random number that depends on `seed`: splitmix64's.
fn random(seed: u64, bound: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) % bound
}

/// A heap of `objects` objects with about 2.5 references each: to what they own, back to what owns them, to their
/// neighbours, to what many refer to, such as Symbols, and one in each record to any object at all.
fn walk(objects: u64) -> Graph {
    let mut builder = Builder::new();
    builder.category(Kind::Category, "vm");
    let containers = objects / (RECORD * RECORDS) + 1;
    (0..containers).for_each(|container| builder.edge(address(container)));
    while let Some((_, address_of_it)) = builder.next() {
        let this = number(address_of_it);
        let kind = if this < containers { Kind::Anchor } else { Kind::Plain };
        builder.object(kind, SLOT, address(this % 7));
        let mut refer_to = |to: u64| {
            if to < objects {
                builder.edge(address(to));
            }
        };
        if this < containers {
            (0..RECORDS).for_each(|record| refer_to(containers + (this * RECORDS + record) * RECORD));
            continue;
        }
        let place = (this - containers) % RECORD;
        let (record, shared) = (this - place, containers + random(this, objects / 100) / RECORD * RECORD + 1);
        match place {
            0 => {
                (1..4).for_each(|member| refer_to(record + member));
                [(this - containers) / RECORD / RECORDS, shared, containers + random(!this, objects)]
                    .into_iter()
                    .for_each(refer_to);
            }
            1 | 2 => {}
            3 => (4..RECORD).for_each(|element| refer_to(record + element)),
            _ => {
                [record, shared].into_iter().for_each(refer_to);
            }
        }
    }
    builder.finish()
}

/// Calls all objects the same.
struct Namesake;

impl Describe for Namesake {
    fn node(&mut self, _node: NodeId) -> NodeName {
        NodeName { text: "Foo".to_owned(), ..NodeName::default() }
    }

    fn edges(&mut self, _parent: NodeId, children: &[NodeId]) -> Vec<Edge> {
        vec![Edge::Element; children.len()]
    }
}

/// Samples of about one object in `interval`, of ten sites.
fn samples(objects: u64, interval: u64) -> Vec<Sample> {
    let sample = |step: u64| Sample {
        address: address(step * interval + random(step, interval)),
        site: (step % 10) as u32,
        class: None,
        weight: interval as f64,
        bytes: SLOT,
        window: None,
    };
    (0..objects / interval).map(sample).collect()
}

/// The CPU time of this thread in nanoseconds, on Linux; elsewhere NaN.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok()).unwrap_or(f64::NAN)
}

/// Bytes of a field of Linux's /proc/self/status; elsewhere NaN.
fn status(field: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|rest| rest.trim_matches([':', '\t', ' ', 'k', 'B']).parse::<f64>().ok());
    kilobytes.unwrap_or(f64::NAN) * 1024.0
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut sizes: Vec<u64> = std::env::args().skip(1).map(|size| size.parse()).collect::<Result<_, _>>()?;
    if sizes.is_empty() {
        sizes = vec![1_000_000, 5_000_000];
    }
    for objects in sizes {
        let before = status("VmRSS");
        let mut start = cpu();
        let mut lap = |what: &str| {
            let elapsed = cpu() - std::mem::replace(&mut start, cpu());
            println!("{what:<24} {:>8.1} ms {:>8.1} ns per object", elapsed / 1e6, elapsed / objects as f64);
        };
        let graph = walk(objects);
        lap("walk of a made-up heap");
        let samples = samples(objects, objects / SAMPLES);
        let sites = vec![SiteName::default(); 10];
        let answer = answer(&graph, &samples, &sites, &Question::default(), &mut Namesake);
        lap("answer");
        let used = status("VmHWM") - before;
        let search = Search::new(&graph);
        lap("  of that, search");
        let dominators = Dominators::new(&graph);
        lap("  of that, dominators");
        let (nodes, edges) = (graph.len() as f64, graph.edges() as f64);
        println!("{nodes} nodes, {edges} edges, {} samples", answer.samples);
        println!("the graph {:.1} bytes per node, at most {:.1} at once", graph.memory() as f64 / nodes, used / nodes);
        drop((search, dominators));
    }
    Ok(())
}
