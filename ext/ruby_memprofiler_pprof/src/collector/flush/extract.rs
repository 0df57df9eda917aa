//! What a profile is built from, copied out of the collector so that the rest works without the GVL.
//!
//! Where memory is short a flush should take little of it: the frames become the profile's as they are, and the values
//! stay where the flush has added them up.

use super::{CLOCK_STRIDE, FlushFailure, assembly};
use crate::collector::resolve::Owner;
use crate::collector::sample_types::Columns;
use crate::collector::sites::Sites;
use crate::collector::stacks::{FrameKind, Stacks};
use crate::vm::names::FunctionName;
use memprofiler_core::interner::Interner;
use memprofiler_core::labels::LabelSet;
use memprofiler_core::pprof;
use memprofiler_core::profile::{EMPTY_STACK, Frame, Header};
use memprofiler_core::reservoir::ClassId;
use memprofiler_core::sparse_array::SparseArray;
use memprofiler_core::stack_tree::{Node, StackId};
use memprofiler_core::stratum::Stratum;
use memprofiler_core::sums::Sums;
use std::io;
use std::num::NonZeroU32;
use std::ops::AddAssign;
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
    pub stratum: Stratum,
}

/// Set in the location of a frame that stands for labels: the stack is the one that it extends, with these labels.
pub const LABELS: u32 = 1 << 31;

/// What a flush's keys refer to, by name.
#[derive(Debug)]
pub struct Extract {
    /// For each key its stack, in order.
    pub stacks: Vec<u32>,
    /// The stacks of the profile, the first of them empty. A location is an index into `places`, or with [`LABELS`]
    /// into `labels`.
    pub frames: Vec<Frame>,
    /// Functions and lines.
    pub places: Vec<(Arc<FunctionName>, u32)>,
    /// The labels of all stacks above or, at the inner end, of the whole stack.
    pub labels: Vec<Arc<LabelSet>>,
    /// The names of classes.
    pub classes: SparseArray<Arc<str>>,
    /// Finds what was copied.
    pub index: Index,
}

/// Finds what was copied.
#[derive(Debug, Default)]
pub struct Index {
    /// By the index of a stack of the collector.
    stacks: SparseArray<NonZeroU32>,
    /// By the number of a function's name, and line.
    places: Interner<(u32, u32)>,
}

impl Extract {
    /// Copies what the keys of `sums` refer to, which `owner` knows by name. `rest` is called in between.
    pub fn of<V: Copy + Default + AddAssign>(
        owner: &impl Owner,
        sums: &Sums<Key, V>,
        mut rest: impl FnMut() -> Result<(), FlushFailure>,
    ) -> Result<Self, FlushFailure> {
        let mut extract = Self::new(sums.len());
        for first in (0..sums.len()).step_by(CLOCK_STRIDE) {
            owner.with_sites(|sites| {
                let keys = (first..first + CLOCK_STRIDE).map_while(|position| sums.key(position));
                keys.for_each(|&key| extract.add(sites, key));
            });
            rest()?;
        }
        Ok(extract)
    }

    /// An empty extract, with room for `keys`.
    fn new(keys: usize) -> Self {
        Self {
            stacks: Vec::with_capacity(keys),
            frames: vec![Frame { caller: EMPTY_STACK, location: LABELS }],
            places: Vec::new(),
            labels: Vec::new(),
            classes: SparseArray::default(),
            index: Index::default(),
        }
    }

    /// Copies what one key refers to, which is known by name.
    fn add(&mut self, sites: &Sites, key: Key) {
        let stack = self.stack(&sites.stacks, key.stack);
        self.stacks.push(stack);
        let class = key.class.0 as usize;
        if self.classes.get(class).is_none() {
            if let Some(name) = sites.classes.name(key.class) {
                self.classes.insert(class, Arc::clone(name));
            }
        }
    }

    fn stack(&mut self, stacks: &Stacks, stack: StackId) -> u32 {
        let mut missing = Vec::new();
        let mut at = stack;
        let mut copied = EMPTY_STACK;
        while let (Some(index), Some(node)) = (at.index(), stacks.node(at)) {
            if let Some(known) = self.index.stacks.get(index) {
                copied = known.get();
                break;
            }
            missing.push((index, node));
            at = node.parent;
        }
        for (index, node) in missing.into_iter().rev() {
            let Some(location) = self.location(stacks, node) else { continue };
            self.frames.push(Frame { caller: copied, location });
            copied = self.frames.len() as u32 - 1;
            if let Some(copied) = NonZeroU32::new(copied) {
                self.index.stacks.insert(index, copied);
            }
        }
        copied
    }

    /// The location of a frame; None if it has no name.
    fn location(&mut self, stacks: &Stacks, node: Node) -> Option<u32> {
        let labels = match stacks.frame_kind(node) {
            FrameKind::Named(id) => {
                let name = stacks.function_name(id)?;
                // Numbered in order, since none is released.
                let (place, is_new) = self.index.places.acquire((id, node.position));
                if is_new {
                    self.places.push((Arc::clone(name), node.position));
                }
                return Some(place);
            }
            FrameKind::Labels(id) => Arc::clone(stacks.labels(id)?),
            FrameKind::Span(number) => Arc::new(stacks.span(number)?.labels()),
            _ => return None,
        };
        self.labels.push(labels);
        Some(LABELS | (self.labels.len() as u32 - 1))
    }

    /// The encoded profile of what the keys have in `sums`, and how long it took to build and to encode it.
    pub fn encode<const N: usize, V: Columns<N>>(
        self,
        sums: &Sums<Key, V>,
        header: &Header,
    ) -> (io::Result<Vec<u8>>, Duration, Duration) {
        let start = Instant::now();
        // Nobody interrupts it.
        let profile = assembly::profile(self, sums, header).map_err(io::Error::other);
        let build = start.elapsed();
        let encoded = profile.and_then(|profile| pprof::write_whole(&profile, GZIP_LEVEL));
        (encoded, build, start.elapsed() - build)
    }
}
