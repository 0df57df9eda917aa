//! What nodes and edges are called.

use super::classes::ByAddress;
use super::edges::Labels;
use super::prepared::Prepared;
use super::types::DataType;
use super::variables::variable;
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
    /// The Threads by the execution contexts in which they run.
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
                let object = graph.address(node);
                // SAFETY: as above; and the GVL is held. Fibers are of this kind, too.
                let context = unsafe {
                    let is_thread = DataType::of(object).is_some_and(|of| Some(of) == prepared.types().thread);
                    prepared.context(object).filter(|_| is_thread)
                };
                if let Some(context) = context {
                    threads.insert(context as u64, object);
                }
            }
        }
        Self { graph, prepared, known, threads }
    }

    /// The Thread that runs in that execution context.
    pub(super) fn thread_in(&self, context: *const u8) -> Option<VALUE> {
        self.threads.get(&(context as u64)).copied()
    }

    pub(super) fn known(&self, object: VALUE) -> Option<Known> {
        self.known.get(&object).copied()
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
