//! What a profile is built from, copied out of the collector so that the rest works without the GVL.

use super::assembly::Assembly;
use crate::collector::sample_types::Values;
use crate::collector::sites::Sites;
use crate::collector::stacks::{FrameKind, Stacks};
use crate::vm::names::FunctionName;
use memprofiler_core::labels::LabelSet;
use memprofiler_core::pprof;
use memprofiler_core::profile::Header;
use memprofiler_core::reservoir::ClassId;
use memprofiler_core::sparse_array::SparseArray;
use memprofiler_core::stack_tree::StackId;
use memprofiler_core::window_group::WindowGroup;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// At levels 1, 2, 3 and 6, a flush of 10,000 stacks takes 28, 32, 31 and 43 ms and writes 434, 273, 279 and 270 KB.
const GZIP_LEVEL: u32 = 2;

/// The key of a flush's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub stack: StackId,
    pub class: ClassId,
    pub age: Option<u32>,
    pub window: Option<WindowGroup>,
}

/// Samples and the frames of their stacks, by name.
#[derive(Debug, Default)]
pub struct Extract {
    samples: Vec<NamedSample>,
    /// Callers precede those they call.
    frames: Vec<NamedFrame>,
    /// The position in `frames` of each stack of the collector, by its index.
    known: SparseArray<u32>,
}

/// A sample; its stack is the number of a frame.
#[derive(Debug)]
pub struct NamedSample {
    pub stack: Option<u32>,
    pub class: Option<Arc<str>>,
    pub age: Option<u32>,
    /// The group of the windows in which it was taken.
    pub window: Option<WindowGroup>,
    pub values: Values,
}

/// A frame and the number of its caller.
#[derive(Debug)]
pub struct NamedFrame {
    pub caller: Option<u32>,
    pub what: What,
}

/// What a frame stands for.
#[derive(Debug)]
pub enum What {
    /// A line of a function.
    Line(Arc<FunctionName>, u32),
    /// The labels of the stack above or, at its inner end, of the whole stack.
    Labels(Arc<LabelSet>),
}

impl Extract {
    /// An empty extract, with room for `samples`.
    pub fn new(samples: usize) -> Self {
        Self { samples: Vec::with_capacity(samples), ..Self::default() }
    }

    /// Copies one sample, whose stack and class are known by name.
    pub fn add(&mut self, sites: &Sites, key: Key, values: Values) {
        let stack = self.frame(&sites.stacks, key.stack);
        let class = sites.classes.name(key.class).cloned();
        self.samples.push(NamedSample { stack, class, age: key.age, window: key.window, values });
    }

    /// The number of the innermost frame of `stack`.
    fn frame(&mut self, stacks: &Stacks, stack: StackId) -> Option<u32> {
        let mut missing = Vec::new();
        let mut at = stack;
        let mut caller = None;
        while let (Some(index), Some(node)) = (at.index(), stacks.node(at)) {
            caller = self.known.get(index).copied();
            if caller.is_some() {
                break;
            }
            missing.push((index, node));
            at = node.parent;
        }
        for (index, node) in missing.into_iter().rev() {
            let what = match stacks.frame_kind(node) {
                FrameKind::Named(id) => {
                    stacks.function_name(id).map(|name| What::Line(Arc::clone(name), node.position))
                }
                FrameKind::Labels(id) => stacks.labels(id).map(|labels| What::Labels(Arc::clone(labels))),
                FrameKind::Span(number) => stacks.span(number).map(|span| What::Labels(Arc::new(span.labels()))),
                _ => None,
            };
            let Some(what) = what else { continue };
            let number = self.frames.len() as u32;
            self.frames.push(NamedFrame { caller, what });
            self.known.insert(index, number);
            caller = Some(number);
        }
        caller
    }

    /// The encoded profile, and how long it took to build and to encode it.
    pub fn encode(self, header: &Header) -> (io::Result<Vec<u8>>, Duration, Duration) {
        let start = Instant::now();
        let mut assembly = Assembly::default();
        self.frames.iter().for_each(|frame| assembly.frame(frame));
        self.samples.into_iter().for_each(|sample| assembly.sample(sample));
        // Nobody interrupts it.
        let profile = assembly.finish(header).map_err(io::Error::other);
        let build = start.elapsed();
        let encoded = profile.and_then(|profile| pprof::write_whole(&profile, GZIP_LEVEL));
        (encoded, build, start.elapsed() - build)
    }
}
