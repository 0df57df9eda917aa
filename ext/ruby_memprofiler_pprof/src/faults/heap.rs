//! The heap's graph, for specs: in process, with the GVL held.

use super::injection::denied;
use super::malloc_trap::counted;
use crate::vm::clock;
use crate::vm::heap::{Describer, Prepared, Sizes, walk};
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RClass, RHash, Ruby};
use memprofiler_core::graph::{Builder, Describe, Graph, Kind, NodeId};
use std::collections::{BTreeMap, VecDeque};

/// How many objects `paths` finds at most.
const OBJECTS: usize = 5;

fn graph(ruby: &Ruby, sizes: Sizes) -> Result<(Prepared, Graph), Error> {
    let prepared = Prepared::new(ruby)?;
    if !denied("heap settle") {
        prepared.settle(ruby);
    }
    // SAFETY: the GVL is held, and nothing runs Ruby code before the graph is returned.
    let graph = unsafe { walk(Builder::new(), &prepared, sizes) };
    Ok((prepared, graph))
}

/// How much there is: objects, their bytes, the references, and the nanoseconds of CPU time that the walk took. With
/// `all_sizes`, extensions measure their objects.
pub fn figures(ruby: &Ruby, all_sizes: bool) -> Result<RHash, Error> {
    let start = clock::thread_cpu();
    let (_, graph) = graph(ruby, if all_sizes { Sizes::All } else { Sizes::Own })?;
    let nanoseconds = (clock::thread_cpu() - start).as_nanos() as u64;
    let objects: Vec<NodeId> = graph.nodes().filter(|&node| graph.address(node) != 0).collect();
    let bytes: u64 = objects.iter().map(|&node| graph.bytes(node)).sum();
    let figures = ruby.hash_new();
    figures.aset(ruby.to_symbol("objects"), objects.len())?;
    figures.aset(ruby.to_symbol("bytes"), bytes)?;
    figures.aset(ruby.to_symbol("edges"), graph.edges())?;
    figures.aset(ruby.to_symbol("nanoseconds"), nanoseconds)?;
    Ok(figures)
}

/// Names everything, and labels every reference. Returns how many references there are of each kind, and how often the
/// VM called malloc or free meanwhile, if a spec has preloaded the trap.
pub fn described(ruby: &Ruby) -> Result<(BTreeMap<String, usize>, Option<u64>), Error> {
    let prepared = Prepared::new(ruby)?;
    prepared.settle(ruby);
    let mut kinds = BTreeMap::new();
    let ((), trapped) = counted(|| {
        // SAFETY: the GVL is held, and nothing runs Ruby code meanwhile.
        let graph = unsafe { walk(Builder::new(), &prepared, Sizes::Own) };
        // SAFETY: as above; no Ruby object is allocated.
        let mut describer = unsafe { Describer::new(&graph, &prepared) };
        for node in graph.nodes() {
            describer.node(node);
            for edge in describer.edges(node, graph.out(node)) {
                let kind = format!("{edge:?}");
                let kind = kind.split([' ', '(', '{']).next().unwrap_or_default();
                *kinds.entry(kind.to_owned()).or_default() += 1;
            }
        }
    });
    Ok((kinds, trapped))
}

/// The paths to instances of `class`, each from where a programmer would begin: first the name of an object, then by
/// turns how it refers to the next one, and that one's name.
pub fn paths(ruby: &Ruby, class: RClass) -> Result<RArray, Error> {
    let (prepared, graph) = graph(ruby, Sizes::Own)?;
    let parents = search(&graph);
    let class = graph.node(class.as_raw());
    let objects = graph.nodes().filter(|&node| class.is_some() && graph.class(node) == class).take(OBJECTS);
    // SAFETY: the GVL is held since the walk, and no Ruby object was allocated.
    let mut describer = unsafe { Describer::new(&graph, &prepared) };
    let texts: Vec<Vec<String>> = objects.map(|node| path(&graph, &parents, &mut describer, node)).collect();
    let paths = ruby.ary_new();
    for texts in texts {
        paths.push(ruby.ary_from_vec(texts))?;
    }
    Ok(paths)
}

/// From where the search reached each node: first from classes and global variables, then through threads, last through
/// code and caches and from the other roots.
fn search(graph: &Graph) -> Vec<Option<NodeId>> {
    let mut parents = vec![None; graph.len()];
    let mut queues: [VecDeque<NodeId>; 3] = Default::default();
    queues[0].extend(graph.nodes().filter(|&node| graph.kind(node) == Kind::Anchor));
    let mut reached: Vec<bool> = graph.nodes().map(|node| graph.kind(node) == Kind::Anchor).collect();
    queues[1].extend(graph.nodes().filter(|&node| graph.kind(node) == Kind::Thread));
    queues[2].push_back(NodeId::ROOT);
    reached[NodeId::ROOT.index()] = true;
    for phase in 0..queues.len() {
        while let Some(node) = queues[phase].pop_front() {
            for &child in graph.out(node) {
                if std::mem::replace(&mut reached[child.index()], true) {
                    continue;
                }
                parents[child.index()] = Some(node);
                let later = match graph.kind(child) {
                    Kind::Thread => 1,
                    Kind::Code | Kind::Cache | Kind::Category => 2,
                    _ => 0,
                };
                queues[later.max(phase)].push_back(child);
            }
        }
    }
    parents
}

fn path(graph: &Graph, parents: &[Option<NodeId>], describer: &mut Describer, node: NodeId) -> Vec<String> {
    let mut nodes = vec![node];
    let mut first = node;
    while let Some(parent) = parents[first.index()] {
        if graph.kind(first) == Kind::Thread {
            break;
        }
        nodes.push(parent);
        first = parent;
    }
    let mut texts = vec![describer.node(first).text];
    for (&child, &parent) in nodes.iter().zip(&nodes[1..]).rev() {
        let edge = describer.edges(parent, &[child]);
        texts.push(edge.first().map(|edge| format!("{edge:?}")).unwrap_or_default());
        let name = describer.node(child);
        texts.push(name.count.map_or(name.text.clone(), |count| format!("{} ({count})", name.text)));
    }
    texts
}
