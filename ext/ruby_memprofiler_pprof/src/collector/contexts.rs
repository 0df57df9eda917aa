//! The last stack seen in each execution context: most stacks differ from it in a few innermost frames only.

use crate::vm::frames::SeenFrame;
use memprofiler_core::stack_tree::StackId;

/// A control frame as it was, and the stack that ends in it. Holds a reference to the stack, which keeps what the frame
/// refers to alive: equal words mean the same code.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub frame: SeenFrame,
    pub stack: StackId,
}

/// The frames of one execution context, outermost first.
#[derive(Debug, Default)]
pub struct SeenStack {
    context: usize,
    /// The number of the control frame that `frames` begins with.
    pub base: usize,
    pub frames: Vec<Seen>,
}

/// How many contexts are remembered. A program that switches among more fibers than this pays for whole walks.
const CAPACITY: usize = 32;

/// The contexts that allocated samples lately.
#[derive(Debug, Default)]
pub struct Contexts {
    stacks: Vec<SeenStack>,
    /// Where the last look-up ended.
    latest: usize,
    /// Whom to replace next.
    victim: usize,
}

impl Contexts {
    /// What was seen of `context` last. If it takes the place of another, the references of that one are passed to
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
    fn find(&mut self, context: usize, release: impl FnMut(StackId)) -> usize {
        if let Some(found) = self.stacks.iter().position(|stack| stack.context == context) {
            return found;
        }
        if self.stacks.len() < CAPACITY {
            self.stacks.push(SeenStack { context, ..SeenStack::default() });
            return self.stacks.len() - 1;
        }
        self.victim = (self.victim + 1) % CAPACITY;
        let stack = &mut self.stacks[self.victim];
        stack.frames.drain(..).map(|seen| seen.stack).for_each(release);
        stack.context = context;
        self.victim
    }

    /// Forgets everything; the references are passed to `release`.
    pub fn clear(&mut self, release: impl FnMut(StackId)) {
        let stacks = std::mem::take(&mut self.stacks);
        stacks.into_iter().flat_map(|stack| stack.frames).map(|seen| seen.stack).for_each(release);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.stacks.capacity() * size_of::<SeenStack>()
            + self.stacks.iter().map(|stack| stack.frames.capacity() * size_of::<Seen>()).sum::<usize>()
    }
}
