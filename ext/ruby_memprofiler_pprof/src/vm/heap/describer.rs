//! What nodes and edges are called.

use super::classes::ByAddress;
use super::edges::Labels;
use super::prepared::Prepared;
use super::types::DataType;
use super::variables::variable;
use crate::vm::object::is_heap;
use memprofiler_core::graph::{Describe, Edge, Graph, Kind, NodeId, NodeName};
use rb_sys::VALUE;

/// An object of the VM's own, known by what refers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// The Hash of a Thread's thread variables.
    ThreadVariables,
    /// The Array of an object's finalizers.
    Finalizers,
}

/// Knows the objects of a heap that was walked.
///
/// A name in parentheses is that of something that no Ruby program sees: a part of the VM between two objects, which a
/// reader can do without.
pub struct Describer<'a> {
    pub(super) graph: &'a Graph,
    pub(super) prepared: &'a Prepared,
    known: ByAddress<Known>,
    /// The Threads by the fibers that they have begun with.
    threads: ByAddress<VALUE>,
}

impl<'a> Describer<'a> {
    /// Knows what `graph` has.
    ///
    /// # Safety
    /// The GVL must be held from the walk until the last use, and no other thread run Ruby code meanwhile; nothing may
    /// have been allocated since the walk on Ruby's heap. There must be no other Ractors.
    pub unsafe fn new(graph: &'a Graph, prepared: &'a Prepared) -> Self {
        let (mut known, mut threads) = (ByAddress::default(), ByAddress::default());
        for node in graph.nodes() {
            if graph.category(node) == Some("finalizers") {
                known.extend(graph.out(node).iter().map(|&list| (graph.address(list), Known::Finalizers)));
            }
            if matches!(graph.kind(node), Kind::Thread | Kind::EndedThread) {
                // SAFETY: it was reached, and is alive.
                let variables = unsafe { variable(graph.address(node), prepared.ids.variables) };
                if variables != 0 {
                    known.insert(variables, Known::ThreadVariables);
                }
                // SAFETY: as above.
                threads.extend(unsafe { own_fiber(graph, prepared, node) });
            }
        }
        Self { graph, prepared, known, threads }
    }

    /// The Thread that has begun with that Fiber.
    pub(super) fn thread_of(&self, fiber: VALUE) -> Option<VALUE> {
        self.threads.get(&fiber).copied()
    }

    pub(super) fn known(&self, object: VALUE) -> Option<Known> {
        self.known.get(&object).copied()
    }
}

/// The fiber that a Thread has begun with, and the Thread; None if that is no object, and for other objects. A Thread
/// refers to this fiber and to the one that it runs, which may be the same.
///
/// # Safety
/// The GVL must be held, and what the graph has be alive.
unsafe fn own_fiber(graph: &Graph, prepared: &Prepared, node: NodeId) -> Option<(VALUE, VALUE)> {
    let (types, thread) = (prepared.types(), graph.address(node));
    // SAFETY: only called for objects of the graph, which are alive.
    let is = |object, wanted: Option<_>| unsafe { DataType::of(object) }.is_some_and(|of| Some(of) == wanted);
    if !is(thread, types.thread) {
        return None;
    }
    let mut fibers: Vec<VALUE> = graph.out(node).iter().map(|&to| graph.address(to)).collect();
    fibers.retain(|&object| is_heap(object) && is(object, types.fiber));
    fibers.sort_unstable();
    fibers.dedup();
    // SAFETY: as above, of objects that are a Fiber and a Thread.
    let runs =
        |fiber| unsafe { prepared.context(fiber).is_some_and(|context| Some(context) == prepared.context(thread)) };
    match fibers[..] {
        [one] if runs(one) => Some((one, thread)),
        [one, other] if runs(one) != runs(other) => Some((if runs(one) { other } else { one }, thread)),
        _ => None,
    }
}

impl Describe for Describer<'_> {
    fn node(&mut self, node: NodeId) -> NodeName {
        match self.graph.category(node) {
            Some(category) => NodeName { text: format!("({category})"), ..NodeName::default() },
            None if node == NodeId::ROOT => NodeName { text: "(root)".to_owned(), ..NodeName::default() },
            // SAFETY: it was reached, and by the contract of `new` still is as it was then.
            None => unsafe { self.name(self.graph.address(node)) },
        }
    }

    fn edges(&mut self, parent: NodeId, children: &[NodeId]) -> Vec<Edge> {
        let mut labels = Labels::new(self.graph, children);
        match self.graph.category(parent) {
            Some("global_tbl") => {
                for (value, name) in &self.prepared.globals {
                    labels.add(*value, || Edge::Global(name.clone()));
                }
            }
            Some("finalizers") => labels.add_rest(&Edge::Finalizer),
            Some(_) => {}
            None if parent == NodeId::ROOT => {}
            // SAFETY: as above.
            None => unsafe { self.label(self.graph.address(parent), &mut labels) },
        }
        labels.finish()
    }
}
