//! Named frames, in place of frames known by the VM's objects.

use super::{FrameKind, Stacks};
use crate::vm::names::{FunctionName, ShownAt};
use memprofiler_core::labels::{LabelSet, THREAD};
use memprofiler_core::stack_tree::{Node, StackId};
use rb_sys::VALUE;
use std::sync::Arc;

fn labels_of_thread(name: Option<&str>) -> Arc<LabelSet> {
    Arc::new(name.map(|name| LabelSet::of(THREAD, name)).unwrap_or_default())
}

impl Stacks {
    /// The first function from number `first` on that stands for a Thread: its number, and the Thread.
    pub fn next_thread(&self, first: usize) -> Option<(usize, VALUE)> {
        (first..self.tree.function_bound()).find_map(|number| match FrameKind::of(self.tree.function_at(number)?) {
            FrameKind::Thread(thread) => Some((number, thread)),
            _ => None,
        })
    }

    /// Puts a Thread's name in its place in all stacks so far, which then no longer keep it alive. No flush or naming
    /// may hold them.
    pub fn name_thread(&mut self, thread: VALUE, name: Option<&str>) {
        // They compare the Thread's address.
        self.forget_contexts();
        let key = FrameKind::Thread(thread).key();
        if self.tree.has_function(key) {
            let labels = self.labels_id(&labels_of_thread(name));
            let (base, _) = self.tree.extend(StackId::EMPTY, key, 0);
            self.tree.replace_function(base, FrameKind::Labels(labels).key());
            self.tree.release(base);
        }
    }

    /// The counterpart of a frame that stays as it is, on top of a named caller; with one reference for the caller of
    /// this function. The span of a sample that is no longer an exemplar is left out, and so are labels if there are
    /// none, as of a Thread without a name.
    pub fn extend_same(&mut self, caller: StackId, node: Node) -> StackId {
        let key = self.tree.function_key(node.function);
        match FrameKind::of(key) {
            FrameKind::Span(number) if self.span(number).is_none() => self.tree.retained(caller),
            FrameKind::Labels(id) if self.labels(id).is_some_and(|labels| labels.pairs().is_empty()) => {
                self.tree.retained(caller)
            }
            _ => self.tree.extend(caller, key, node.position).0,
        }
    }

    /// The counterpart of a frame, on top of a named caller; with one reference for the caller of this function.
    pub fn extend_named(
        &mut self,
        caller: StackId,
        node: Node,
        (name, place): (Arc<FunctionName>, ShownAt),
        line: u32,
    ) -> StackId {
        match self.frame_kind(node) {
            FrameKind::Named(_) | FrameKind::Labels(_) | FrameKind::Span(_) => self.extend_same(caller, node),
            FrameKind::Thread(_) if name.name.is_empty() => StackId::EMPTY,
            FrameKind::Thread(_) => self.labelled(StackId::EMPTY, &labels_of_thread(Some(&name.name))),
            FrameKind::Deferred(number) => self.on_base(caller, self.deferred.stack(number)),
            FrameKind::Walked { .. } | FrameKind::Profiled(_) => self.extend_placed(caller, name, place, line),
        }
    }

    fn extend_placed(&mut self, caller: StackId, name: Arc<FunctionName>, place: ShownAt, line: u32) -> StackId {
        let (parent, name, line) = match place {
            ShownAt::Own => (caller, name, line),
            ShownAt::InPlaceOfCaller => {
                // If the stack was cut above the method, there is nothing to replace.
                let method = self.tree.node(caller).filter(|&node| !self.is_base(node));
                (method.map_or(caller, |node| node.parent), name, line)
            }
            ShownAt::Caller => {
                let (name, line) = self.at_caller(caller, name);
                (caller, name, line)
            }
        };
        let id = self.function_names.id(name);
        self.tree.extend(parent, FrameKind::Named(id).key(), line).0
    }

    /// A function without a place of its own, as if it were at its caller's, and the line there.
    fn at_caller(&self, caller: StackId, function: Arc<FunctionName>) -> (Arc<FunctionName>, u32) {
        let found = self.tree.node(caller).and_then(|node| {
            let FrameKind::Named(id) = self.frame_kind(node) else { return None };
            Some((Arc::clone(&self.function_names.get(id)?.file), node.position))
        });
        match found {
            Some((file, line)) => {
                (Arc::new(FunctionName { name: Arc::clone(&function.name), file, start_line: 0 }), line)
            }
            None => (function, 0),
        }
    }
}
