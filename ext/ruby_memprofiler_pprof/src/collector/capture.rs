//! From an execution context to a stored stack, in a hook.

use super::contexts::{Contexts, Origin, Seen};
use super::deferred::Deferred;
use super::keys::Function;
use super::options::BacktraceMethod;
use super::state::Pins;
use crate::vm::frames::{ControlFrames, LAYOUT, Running};
use crate::vm::iseq::is_compiled;
use crate::vm::object::Type;
use crate::vm::position::Position;
use crate::vm::seen_frame::SeenFrame;
use crate::vm::{gc, profile_frames};
use memprofiler_core::labels::LabelSet;
use memprofiler_core::name_table::NameTable;
use memprofiler_core::stack_tree::{FunctionId, StackId, StackTree};
use rb_sys::VALUE;
use std::ops::Range;

/// How many functions one keeper keeps alive.
pub const KEPT_FUNCTIONS: usize = 128;

/// Reads stacks and stores them.
#[derive(Debug)]
pub struct Capture {
    pub stacks: StackTree,
    pub contexts: Contexts,
    pub deferred: Deferred,
    /// The label sets of the stacks. A stack with labels stands on a node for them, and both on one for the thread.
    pub labels: NameTable<LabelSet>,
    /// How often labels were not kept because there were too many sets.
    pub label_overflows: u64,
    /// The name of the frame that stands for the outer frames of a stack deeper than `max_frames`.
    pub(super) truncated: u32,
    /// The name of the frame that stands for a stack that was not kept.
    pub(super) lost: u32,
    pub max_frames: usize,
    /// The objects that mark what the functions refer to, for [`KEPT_FUNCTIONS`] ids each. What is beyond them, the
    /// collector's own object marks.
    pub keepers: Vec<VALUE>,
    pub pins: Pins,
    /// Where `rb_profile_frames` puts its frames, and their lines.
    buffer: (Vec<VALUE>, Vec<i32>),
}

/// The position of a frame that `rb_profile_frames` has already given a line.
pub type Line = u32;

impl Capture {
    pub fn new(truncated: u32, lost: u32) -> Self {
        Self {
            stacks: StackTree::new(),
            contexts: Contexts::default(),
            deferred: Deferred::default(),
            labels: NameTable::new(),
            label_overflows: 0,
            truncated,
            lost,
            max_frames: 0,
            keepers: Vec::new(),
            pins: Pins::default(),
            buffer: (Vec::new(), Vec::new()),
        }
    }

    /// The stack of `context`, which has this origin and allocates an object of type `allocated`, with one reference
    /// for the caller. Values stored for the first time are announced to the GC as references of `holder`.
    ///
    /// # Safety
    /// In a hook that the VM runs in `context`; `holder` alive.
    #[inline]
    pub unsafe fn stack(
        &mut self,
        method: BacktraceMethod,
        context: *const u8,
        origin: Origin,
        allocated: Type,
        holder: VALUE,
    ) -> StackId {
        match (method, LAYOUT) {
            // SAFETY: the VM runs the hook in `context`, `holder` is alive, and the layout is known.
            (BacktraceMethod::ControlFrames, Some(_)) => unsafe { self.walk(context, origin, allocated, holder) },
            (BacktraceMethod::BacktraceLocations, _) => {
                let number = self.deferred.number(context);
                // The labels are read with the stack. A thread's name cannot be: that takes a method.
                let base = self.base(Origin { labels: None, ..origin }, holder);
                let (stack, new) = self.stacks.extend(base, Function::Deferred(number).key(), 0);
                if new {
                    self.pins.add(true);
                }
                self.stacks.release(base);
                stack
            }
            // SAFETY: in a hook, and `holder` is alive.
            _ => unsafe { self.profile_frames(origin, holder) },
        }
    }

    /// What a frame runs.
    pub fn function(&self, id: FunctionId) -> Function {
        Function::of(self.stacks.function_key(id))
    }

    /// Reads the control frames, and stores those above the first that differs from the context's last stack.
    ///
    /// # Safety
    /// As for [`stack`](Self::stack), and [`LAYOUT`] must be known.
    #[inline]
    unsafe fn walk(&mut self, context: *const u8, origin: Origin, allocated: Type, holder: VALUE) -> StackId {
        // SAFETY: the VM runs the hook in `context`, so that it is the running thread's; the layout is known.
        let frames = unsafe { ControlFrames::of(context) };
        let first = first_frame(frames.len(), self.max_frames);
        if !self.contexts.of(context, |stack| self.stacks.release(stack)).begins_with(first, origin) {
            self.begin_anew(context, first, origin, holder);
        }
        let Self { stacks, contexts, keepers, pins, .. } = self;
        let seen = contexts.of(context, |stack| stacks.release(stack));
        let limit = seen.frames.len().min(comparable(&frames) - first);
        // SAFETY: as many frames can be compared, and the context does not run on inside the hook. What was seen is
        // kept alive by the references to its stacks.
        let shared = unsafe { frames.unchanged(first, &seen.frames[..limit]) };
        seen.frames.drain(shared..).rev().for_each(|seen| stacks.release(seen.stack));
        let mut leaf = seen.frames.last().map_or(seen.base, |seen| seen.stack);
        for index in first + shared..frames.len() {
            // SAFETY: the index is below the number of frames, and the context does not run on inside the hook.
            let frame = unsafe { frames.get(index) };
            // SAFETY: the frame is on the stack.
            let entry = unsafe { frame.method_entry() };
            // SAFETY: the frame is on the stack.
            let function = match unsafe { frame.running(entry) } {
                Running::Ruby { iseq, position } => {
                    let position = if index + 1 == frames.len() {
                        // SAFETY: the frame runs this instruction sequence.
                        position.innermost(allocated, unsafe { is_compiled(iseq) })
                    } else {
                        position
                    };
                    Some((Function::Walked { iseq, entry }, position.raw()))
                }
                Running::Native => Some((Function::Walked { iseq: 0, entry }, 0)),
                Running::Hidden => None,
            };
            leaf = match function {
                Some((function, position)) => {
                    let (stack, new) = stacks.extend(leaf, function.key(), position);
                    if new {
                        announce(stacks, stack, keepers, pins, holder);
                    }
                    stack
                }
                None => {
                    stacks.retain(leaf);
                    leaf
                }
            };
            // SAFETY: the frame is on the stack.
            seen.frames.push(Seen { frame: unsafe { SeenFrame::new(&frame, entry) }, stack: leaf });
        }
        stacks.retain(leaf);
        leaf
    }

    /// Forgets what was seen of a context whose stacks stand on something else now.
    #[cold]
    fn begin_anew(&mut self, context: *const u8, first: usize, origin: Origin, holder: VALUE) {
        let mut base = self.base(origin, holder);
        if first > 0 {
            base = self.truncated(base);
        }
        let Self { stacks, contexts, .. } = self;
        let seen = contexts.of(context, |stack| stacks.release(stack));
        seen.forget(|stack| stacks.release(stack));
        (seen.first, seen.thread, seen.labels, seen.base) = (first, origin.thread, origin.labels.cloned(), base);
    }

    /// Asks the VM for the frames of the running thread.
    ///
    /// # Safety
    /// In a hook; `holder` alive.
    unsafe fn profile_frames(&mut self, origin: Origin, holder: VALUE) -> StackId {
        let base = self.base(origin, holder);
        let Self { max_frames, buffer: (frames, lines), .. } = self;
        // One more than allowed, to see whether there are more.
        let room = *max_frames + 1;
        frames.resize(room, 0);
        lines.resize(room, 0);
        // SAFETY: a hook runs on a Ruby thread.
        let count = unsafe { profile_frames::read(frames, lines) };
        let mut leaf = if count > *max_frames { self.truncated(base) } else { base };
        let Self { stacks, max_frames, keepers, pins, buffer: (frames, lines), .. } = self;
        for (&frame, &line) in frames.iter().zip(lines.iter()).take(count.min(*max_frames)).rev() {
            // SAFETY: just read; inside the hook no frame ends.
            if !unsafe { profile_frames::is_shown(frame, line, leaf == base) } {
                continue;
            }
            let (stack, new) = stacks.extend(leaf, Function::Profiled(frame).key(), line.max(0) as Line);
            if new {
                announce(stacks, stack, keepers, pins, holder);
            }
            stacks.release(leaf);
            leaf = stack;
        }
        leaf
    }

    /// Forgets the last stacks, and with them what only they keep alive.
    pub fn forget_contexts(&mut self) {
        let Self { stacks, contexts, .. } = self;
        contexts.clear(|stack| stacks.release(stack));
    }

    /// Functions beyond those that keepers keep alive.
    pub fn unkept_functions(&self) -> Range<usize> {
        self.keepers.len() * KEPT_FUNCTIONS..usize::MAX
    }

    /// Forgets the deferred stacks up to a number.
    pub fn forget_deferred(&mut self, number: u32) {
        let Self { stacks, deferred, .. } = self;
        deferred.forget_up_to(number, |stack| stacks.release(stack));
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.stacks.bytes()
            + self.contexts.bytes()
            + self.deferred.bytes()
            + self.labels.bytes(LabelSet::bytes)
            + self.buffer.0.capacity() * size_of::<VALUE>()
            + self.buffer.1.capacity() * size_of::<i32>()
    }
}

/// How many frames can be compared with what was seen. Where the position of the innermost frame depends on what was
/// allocated, that frame cannot, unless a C function runs in it.
#[inline]
fn comparable(frames: &ControlFrames) -> usize {
    let count = frames.len();
    // SAFETY: the index is that of the innermost frame, inside a hook.
    let varies = Position::ADVANCED && count > 0 && !unsafe { frames.get(count - 1).is_native() };
    count - usize::from(varies)
}

/// The outermost frame to read of a stack of `count`. Stacks that are too deep are cut at a quarter of the limit at a
/// time, so that those of a deep recursion have their outer frames in common nevertheless.
fn first_frame(count: usize, max_frames: usize) -> usize {
    if count <= max_frames {
        return 0;
    }
    let step = (max_frames / 4).max(1);
    (count - max_frames).div_ceil(step) * step
}

/// Tells the GC of the references of the innermost function of `stack`.
#[cold]
pub fn announce(stacks: &StackTree, stack: StackId, keepers: &[VALUE], pins: &mut Pins, holder: VALUE) {
    let Some(node) = stacks.node(stack) else { return };
    let key = stacks.function_key(node.function);
    let keeper = keepers.get(node.function.0 as usize / KEPT_FUNCTIONS).copied();
    pins.add(keeper.is_some());
    let holder = keeper.unwrap_or(holder);
    for value in [key.code, key.owner] {
        // SAFETY: in a hook. The holder is a root, and it marks the keepers. The value is in use in a frame of the
        // running thread, or is that Thread, and so alive; or it is no reference to the heap.
        unsafe { gc::write_barrier(holder, value as VALUE) };
    }
}
