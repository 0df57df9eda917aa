//! Call stacks: read in hooks, stored once, and known by name after a flush has looked the names up.

mod additions;
mod bases;
mod contexts;
mod deferred;
mod figures;
mod frame_kind;
mod method;
mod named;
mod read;
mod references;
mod spans;

pub use contexts::Origin;
pub use deferred::Deferred;
pub use frame_kind::FrameKind;
pub use method::BacktraceMethod;

use crate::vm::names::FunctionName;
use crate::vm::safepoint::Job;
use contexts::Contexts;
use memprofiler_core::exemplars::Exemplars;
use memprofiler_core::labels::LabelSet;
use memprofiler_core::name_table::NameTable;
use memprofiler_core::stack_tree::{FunctionId, Node, StackId, StackTree};
use rb_sys::VALUE;
use std::sync::Arc;

/// How stacks are read, and how many are kept.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub method: BacktraceMethod,
    /// The maximum number of frames of a stack.
    pub max_frames: usize,
    /// The maximum number of nodes in the tree of all stacks.
    pub max_nodes: usize,
}

/// The referenced stacks, by number, and their parts.
#[derive(Debug)]
pub struct Stacks {
    settings: Settings,
    tree: StackTree,
    /// The number of nodes that triggers the next attempt to keep fewer; above the maximum while much is held.
    limit: usize,
    contexts: Contexts,
    deferred: Deferred,
    function_names: NameTable<FunctionName>,
    /// The label sets of the stacks. A stack with labels is on top of a node for them, and that on one for the thread.
    labels: NameTable<LabelSet>,
    /// How often labels were not kept because there were too many sets.
    label_overflows: u64,
    /// The samples that carry the ids of their span.
    exemplars: Exemplars,
    /// The name of the frame that replaces the outer frames of a stack deeper than `max_frames`.
    truncated: u32,
    /// The name of the frame that replaces a stack that was not kept.
    lost: u32,
    /// The objects that mark what the functions refer to, each for a fixed number of ids. The holder marks what is
    /// beyond them.
    keepers: Vec<VALUE>,
    /// Buffers for the frames of `rb_profile_frames` and their lines.
    buffer: (Vec<VALUE>, Vec<i32>),
}

impl Stacks {
    /// The number of parts in which [`shrink`](Self::shrink) works.
    pub const PARTS: usize = StackTree::PARTS;

    /// No stacks. `backtrace_job` reads, at a safe point, those that a hook cannot.
    pub fn new(settings: Settings, backtrace_job: Job) -> Self {
        let mut function_names = NameTable::new();
        let mut pseudo = |name| function_names.id(Arc::new(FunctionName::pseudo(name)));
        let (truncated, lost) = (pseudo("(truncated)"), pseudo("(stack not kept)"));
        Self {
            settings,
            tree: StackTree::new(),
            limit: settings.max_nodes,
            contexts: Contexts::default(),
            deferred: Deferred::new(backtrace_job),
            function_names,
            labels: NameTable::new(),
            label_overflows: 0,
            exemplars: Exemplars::new(),
            truncated,
            lost,
            keepers: Vec::new(),
            buffer: (Vec::new(), Vec::new()),
        }
    }

    /// Forgets all stacks and names.
    pub fn clear(&mut self) {
        let label_overflows = self.label_overflows;
        *self = Self { label_overflows, ..Self::new(self.settings, self.deferred.job()) };
    }

    /// Replaces the settings.
    pub fn configure(&mut self, settings: Settings) {
        self.settings = settings;
        self.limit = settings.max_nodes;
    }

    /// How stacks are read.
    pub fn method(&self) -> BacktraceMethod {
        self.settings.method
    }

    /// Reserves room for a typical stack, with only its innermost frames new; false if there is no memory.
    #[inline]
    pub fn try_reserve(&mut self) -> bool {
        const FRAMES: usize = 64;
        self.tree.try_reserve(FRAMES)
    }

    /// The innermost frame of `stack`, or None for the empty stack.
    pub fn node(&self, stack: StackId) -> Option<Node> {
        self.tree.node(stack)
    }

    /// All stacks.
    pub fn tree(&self) -> &StackTree {
        &self.tree
    }

    /// One past the highest number of a function's name, and of a label set.
    pub fn name_bounds(&self) -> (usize, usize) {
        (self.function_names.id_bound(), self.labels.id_bound())
    }

    /// What a frame stands for.
    pub fn frame_kind(&self, node: Node) -> FrameKind {
        FrameKind::of(self.tree.function_key(node.function))
    }

    /// The name of the function with this number.
    pub fn function_name(&self, id: u32) -> Option<&Arc<FunctionName>> {
        self.function_names.get(id)
    }

    /// The label set with this number.
    pub fn labels(&self, id: u32) -> Option<&Arc<LabelSet>> {
        self.labels.get(id)
    }

    /// Adds a reference to a stack that already has one.
    pub fn retain(&mut self, stack: StackId) {
        self.tree.retain(stack);
    }

    /// Releases one reference.
    pub fn release(&mut self, stack: StackId) {
        self.tree.release(stack);
    }

    /// Drops the innermost frames that nothing else refers to; see [`StackTree::trim`].
    pub fn trim(&mut self, stack: StackId, dropped: impl FnMut(StackId, Option<FunctionId>)) -> StackId {
        self.tree.trim(stack, dropped)
    }

    /// Forgets what was seen in each context, and what only that keeps alive.
    pub fn forget_contexts(&mut self) {
        let Self { tree, contexts, .. } = self;
        contexts.clear(|stack| tree.release(stack));
    }

    /// Whether there are too many nodes.
    #[inline]
    pub fn are_too_many(&self) -> bool {
        self.tree.len() > self.limit
    }

    /// Allows more nodes than there are now, since they cannot be released yet.
    pub fn raise_limit(&mut self) {
        self.limit = self.tree.len() + self.settings.max_nodes / 2;
    }

    /// Allows as many as the settings do.
    pub fn reset_limit(&mut self) {
        self.limit = self.settings.max_nodes;
    }

    /// The maximum number of nodes, from the settings.
    pub fn max_nodes(&self) -> usize {
        self.settings.max_nodes
    }

    /// Frees memory after many stacks were dropped, in one of [`PARTS`](Self::PARTS) parts.
    pub fn shrink(&mut self, part: usize) {
        self.tree.shrink(part);
    }
}
