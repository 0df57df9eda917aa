//! Stacks that a hook cannot read, each in the tree as one frame that stands for what is read at the next safe point.

use super::{FrameKind, Stacks};
use crate::vm::names::FunctionName;
use crate::vm::safepoint::{self, Job};
use memprofiler_core::hash::Map;
use memprofiler_core::labels::LabelSet;
use memprofiler_core::stack_tree::StackId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the job ran where it could do nothing, and has to be asked for again.
static MISSED: AtomicBool = AtomicBool::new(false);

/// The stacks that samples are still waiting for, and those that came.
#[derive(Debug)]
pub struct Deferred {
    /// What reads them.
    job: Job,
    /// The number given out last.
    latest: u32,
    /// The context whose stack it stands for, until that was read.
    awaited: Option<usize>,
    /// The stacks read since the last flush; each holds a reference.
    read: Map<u32, StackId>,
}

impl Deferred {
    /// None so far. `job` is to call [`Stacks::begin_deferred`] and [`Stacks::store_deferred`].
    pub fn new(job: Job) -> Self {
        Self { job, latest: 0, awaited: None, read: Map::default() }
    }

    /// What reads them.
    pub fn job(&self) -> Job {
        self.job
    }

    /// To be called by the job where it can do nothing: it is asked for again.
    pub fn missed() {
        MISSED.store(true, Ordering::Relaxed);
    }

    /// The number of the stack that `context` will have at its next safe point.
    pub fn number(&mut self, context: *const u8) -> u32 {
        if self.awaited != Some(context as usize) || MISSED.swap(false, Ordering::Relaxed) {
            self.awaited = Some(context as usize);
            self.latest = self.latest.wrapping_add(1);
            safepoint::request(self.job);
        }
        self.latest
    }

    /// The stack behind a number; the empty one if it could not be read.
    pub fn stack(&self, number: u32) -> StackId {
        self.read.get(&number).copied().unwrap_or(StackId::EMPTY)
    }

    /// Bytes held, about.
    pub fn bytes(&self) -> usize {
        self.read.capacity() * size_of::<(u32, StackId)>()
    }

    /// Forgets the stacks up to a number; the references are passed to `release`.
    fn forget_up_to(&mut self, number: u32, mut release: impl FnMut(StackId)) {
        self.read.retain(|&read, &mut stack| {
            let keep = read.wrapping_sub(number) as i32 > 0;
            if !keep {
                release(stack);
            }
            keep
        });
    }
}

impl Stacks {
    /// The number of the stack deferred last.
    pub fn latest_deferred(&self) -> u32 {
        self.deferred.latest
    }

    /// Whether the stack of `context` is to be read now; if not, none is awaited any more.
    pub fn begin_deferred(&mut self, context: *const u8) -> bool {
        self.deferred.awaited.take() == Some(context as usize)
    }

    /// Stores functions and lines, the innermost first, as the stack deferred last.
    pub fn store_deferred(&mut self, frames: &[(FunctionName, u32)], labels: &Arc<LabelSet>) {
        let mut leaf = if labels.pairs().is_empty() { StackId::EMPTY } else { self.labelled(StackId::EMPTY, labels) };
        for (function, line) in frames.iter().take(self.settings.max_frames).rev() {
            let id = self.function_names.id(Arc::new(function.clone()));
            let (stack, _) = self.tree.extend(leaf, FrameKind::Named(id).key(), *line);
            self.tree.release(leaf);
            leaf = stack;
        }
        if let Some(replaced) = self.deferred.read.insert(self.deferred.latest, leaf) {
            self.tree.release(replaced);
        }
    }

    /// Forgets the deferred stacks up to a number.
    pub fn forget_deferred(&mut self, number: u32) {
        let Self { tree, deferred, .. } = self;
        deferred.forget_up_to(number, |stack| tree.release(stack));
    }
}
