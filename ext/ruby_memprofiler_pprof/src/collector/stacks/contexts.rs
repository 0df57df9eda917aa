//! The last stack seen in each execution context: most stacks differ from it only in a few innermost frames.

use crate::vm::seen_frame::SeenFrame;
use memprofiler_core::labels::LabelSet;
use memprofiler_core::stack_tree::StackId;
use rb_sys::VALUE;
use std::sync::Arc;

/// A control frame as it was, and the stack that ends in it. Holds a reference to the stack, which keeps the frame's
/// references alive: equal words mean the same code.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub frame: SeenFrame,
    pub stack: StackId,
}

impl AsRef<SeenFrame> for Seen {
    #[inline]
    fn as_ref(&self) -> &SeenFrame {
        &self.frame
    }
}

/// What a stack belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The Thread, or 0 if it does not matter.
    pub thread: VALUE,
    /// The labels, if there are any.
    pub labels: Option<&'a Arc<LabelSet>>,
}

/// The frames of one execution context, outermost first.
#[derive(Debug)]
pub struct SeenStack {
    context: usize,
    /// The number of the control frame with which `frames` begins.
    pub first: usize,
    /// The context's labels and thread, as in [`Origin`].
    pub labels: Option<Arc<LabelSet>>,
    pub thread: VALUE,
    /// The base of the frames. Holds a reference, too.
    pub base: StackId,
    pub frames: Vec<Seen>,
}

impl SeenStack {
    fn new(context: usize) -> Self {
        Self { context, first: 0, labels: None, thread: 0, base: StackId::EMPTY, frames: Vec::new() }
    }

    /// Whether what was seen begins like this.
    #[inline]
    pub fn begins_with(&self, first: usize, origin: Origin) -> bool {
        let same_labels = match (&self.labels, origin.labels) {
            (None, None) => true,
            (Some(seen), Some(labels)) => Arc::ptr_eq(seen, labels),
            _ => false,
        };
        self.first == first && self.thread == origin.thread && same_labels
    }

    /// Forgets the frames; passes the references to `release`.
    pub fn forget(&mut self, mut release: impl FnMut(StackId)) {
        self.frames.drain(..).rev().for_each(|seen| release(seen.stack));
        release(std::mem::replace(&mut self.base, StackId::EMPTY));
        (self.first, self.labels, self.thread) = (0, None, 0);
    }
}

/// How many contexts are remembered. A program that switches among more fibers than this pays for full walks.
const CAPACITY: usize = 32;
/// How many frames of other contexts are remembered, besides those of the running one.
const MOST_FRAMES: usize = 1 << 15;

/// The contexts that recently allocated samples.
#[derive(Debug, Default)]
pub struct Contexts {
    stacks: Vec<SeenStack>,
    /// Where the last lookup ended.
    latest: usize,
    /// Which one to replace next.
    victim: usize,
}

impl Contexts {
    /// What was last seen of `context`. If it replaces another context, the references of that one are passed to
    /// `release`.
    #[inline]
    pub fn of(&mut self, context: *const u8, release: impl FnMut(StackId)) -> &mut SeenStack {
        let context = context as usize;
        if self.stacks.get(self.latest).is_none_or(|stack| stack.context != context) {
            self.latest = self.find(context, release);
        }
        &mut self.stacks[self.latest]
    }

    #[cold]
    fn find(&mut self, context: usize, mut release: impl FnMut(StackId)) -> usize {
        let mut frames: usize = self.stacks.iter().map(|stack| stack.frames.capacity()).sum();
        while frames > MOST_FRAMES {
            self.victim = (self.victim + 1) % self.stacks.len();
            let stack = &mut self.stacks[self.victim];
            frames -= stack.frames.capacity();
            stack.forget(&mut release);
            stack.frames = Vec::new();
        }
        if let Some(found) = self.stacks.iter().position(|stack| stack.context == context) {
            return found;
        }
        if self.stacks.len() < CAPACITY {
            self.stacks.push(SeenStack::new(context));
            return self.stacks.len() - 1;
        }
        self.victim = (self.victim + 1) % CAPACITY;
        let stack = &mut self.stacks[self.victim];
        stack.forget(release);
        stack.context = context;
        self.victim
    }

    /// Forgets everything; passes the references to `release`.
    pub fn clear(&mut self, mut release: impl FnMut(StackId)) {
        self.stacks.drain(..).for_each(|mut stack| stack.forget(&mut release));
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.stacks.capacity() * size_of::<SeenStack>()
            + self.stacks.iter().map(|stack| stack.frames.capacity() * size_of::<Seen>()).sum::<usize>()
    }
}
