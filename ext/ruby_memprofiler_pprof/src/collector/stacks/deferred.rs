//! Stacks that a hook cannot read. The tree has a single frame for each, as a placeholder for what is read at the next
//! safe point.

use super::{FrameKind, Stacks};
use crate::vm::names::FunctionName;
use crate::vm::safepoint::{self, Job};
use memprofiler_core::hash::Map;
use memprofiler_core::labels::LabelSet;
use memprofiler_core::stack_tree::StackId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the job ran where it could do nothing, and must be requested again.
static MISSED: AtomicBool = AtomicBool::new(false);

/// The stacks that samples are still waiting for, and those that were read.
#[derive(Debug)]
pub struct Deferred {
    /// The job that reads them.
    job: Job,
    /// The number assigned last.
    latest: u32,
    /// The context whose stack that number stands for, until it is read.
    awaited: Option<usize>,
    /// The stacks read since the last flush; each holds a reference.
    read: Map<u32, StackId>,
}

impl Deferred {
    /// No stacks. `job` must call [`Stacks::begin_deferred`] and [`Stacks::store_deferred`].
    pub fn new(job: Job) -> Self {
        Self { job, latest: 0, awaited: None, read: Map::default() }
    }

    /// The job that reads them.
    pub fn job(&self) -> Job {
        self.job
    }

    /// Called by the job where it can do nothing: requests it again.
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

    /// The stack for a number; empty if it could not be read.
    pub fn stack(&self, number: u32) -> StackId {
        self.read.get(&number).copied().unwrap_or(StackId::EMPTY)
    }

    /// Bytes held, approximately.
    pub fn bytes(&self) -> usize {
        self.read.capacity() * size_of::<(u32, StackId)>()
    }

    /// Forgets the stacks up to a number; passes the references to `release`.
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

    /// The number of the stack to read if that is one of `context`; if not, none is awaited any more.
    pub fn begin_deferred(&mut self, context: *const u8) -> Option<u32> {
        (self.deferred.awaited.take() == Some(context as usize)).then_some(self.deferred.latest)
    }

    /// Stores functions and lines, innermost first, as the stack with that number. (Another one may be awaited by now,
    /// since other Ractors run meanwhile.)
    pub fn store_deferred(&mut self, number: u32, frames: &[(FunctionName, u32)], labels: &Arc<LabelSet>) {
        let mut leaf = if labels.pairs().is_empty() { StackId::EMPTY } else { self.labelled(StackId::EMPTY, labels) };
        for (function, line) in frames.iter().take(self.settings.max_frames).rev() {
            let id = self.function_names.id(Arc::new(function.clone()));
            let (stack, _) = self.tree.extend(leaf, FrameKind::Named(id).key(), *line);
            self.tree.release(leaf);
            leaf = stack;
        }
        if let Some(replaced) = self.deferred.read.insert(number, leaf) {
            self.tree.release(replaced);
        }
    }

    /// Forgets the deferred stacks up to a number.
    pub fn forget_deferred(&mut self, number: u32) {
        let Self { tree, deferred, .. } = self;
        deferred.forget_up_to(number, |stack| tree.release(stack));
    }
}
