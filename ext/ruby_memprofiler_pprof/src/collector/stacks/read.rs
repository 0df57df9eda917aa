//! Reads the stack of an execution context into the tree, in a hook.

use super::contexts::Seen;
use super::references::announce;
use super::{BacktraceMethod, FrameKind, Origin, Stacks};
use crate::collector::pins::Holder;
use crate::vm::frames::{ControlFrames, LAYOUT, Running};
use crate::vm::iseq::is_compiled;
use crate::vm::object::Type;
use crate::vm::place::TickFrame;
use crate::vm::position::Position;
use crate::vm::profile_frames;
use crate::vm::seen_frame::SeenFrame;
use crate::vm::single_object;
use memprofiler_core::stack_tree::StackId;

impl Stacks {
    /// The stack of `context`, which has this origin and allocates an object of type `allocated`; with one reference
    /// for the caller. Values stored for the first time are announced to the GC as references of `holder`.
    ///
    /// # Safety
    /// Must be called in a hook that the VM runs in `context`; `holder` must be alive.
    #[inline]
    pub unsafe fn read(&mut self, context: *const u8, origin: Origin, allocated: Type, holder: &mut Holder) -> StackId {
        match (self.settings.method, LAYOUT) {
            // SAFETY: the VM runs the hook in `context`, `holder` is alive, and the layout is known.
            (BacktraceMethod::ControlFrames, Some(_)) => unsafe {
                self.walk(ControlFrames::of(context), context, origin, allocated, holder)
            },
            (BacktraceMethod::BacktraceLocations, _) => {
                let number = self.deferred.number(context);
                // The labels are read with the stack. A thread's name cannot be: that takes a method call.
                let base = self.base(Origin { labels: None, ..origin }, holder);
                let (stack, new) = self.tree.extend(base, FrameKind::Deferred(number).key(), 0);
                if new {
                    holder.pins.add(true);
                }
                self.tree.release(base);
                stack
            }
            // SAFETY: in a hook, and `holder` is alive.
            _ => unsafe { self.profile_frames(origin, holder) },
        }
    }

    /// The stack of `context` as it was at `place`, if that is given and can still be told, or else as it is; with one
    /// reference for the caller.
    ///
    /// # Safety
    /// `context` must be the running one, at a safe point, or one that stands still; the GVL must be held, and `holder`
    /// be alive.
    pub unsafe fn read_at(
        &mut self,
        context: *const u8,
        place: Option<TickFrame>,
        origin: Origin,
        holder: &mut Holder,
    ) -> StackId {
        let walks = self.settings.method == BacktraceMethod::ControlFrames && LAYOUT.is_some();
        let Some(place) = place.filter(|_| walks) else {
            // SAFETY: nothing that is read changes, as in a hook.
            return unsafe { self.read(context, origin, Type::NONE, holder) };
        };
        // SAFETY: as above; the layout is known.
        let (caller, returned) = unsafe {
            let (frames, returned) = place.cut(ControlFrames::of(context));
            (self.walk(frames, context, origin, Type::NONE, holder), returned)
        };
        let Some(entry) = returned else { return caller };
        let Self { tree, keepers, .. } = self;
        let (stack, new) = tree.extend(caller, FrameKind::Walked { iseq: 0, entry }.key(), 0);
        if new {
            announce(tree, stack, keepers, holder);
        }
        tree.release(caller);
        stack
    }

    /// Stores the control frames above the first that differs from the context's last stack. `frames` are the outermost
    /// of those that `context` has, or all.
    ///
    /// # Safety
    /// As for [`read`](Self::read), and [`LAYOUT`] must be known.
    #[inline]
    unsafe fn walk(
        &mut self,
        frames: ControlFrames,
        context: *const u8,
        origin: Origin,
        allocated: Type,
        holder: &mut Holder,
    ) -> StackId {
        let first = first_frame(frames.len(), self.settings.max_frames);
        if !self.contexts.of(context, |stack| self.tree.release(stack)).begins_with(first, origin) {
            self.begin_anew(context, first, origin, holder);
        }
        let Self { tree, contexts, keepers, .. } = self;
        let seen = contexts.of(context, |stack| tree.release(stack));
        let limit = seen.frames.len().min(comparable(&frames) - first);
        // SAFETY: that many frames can be compared, and the context does not continue inside the hook. The references
        // to its stacks keep what was seen alive.
        let shared = unsafe { frames.unchanged(first, &seen.frames[..limit]) };
        seen.frames.drain(shared..).rev().for_each(|seen| tree.release(seen.stack));
        let mut leaf = seen.frames.last().map_or(seen.base, |seen| seen.stack);
        for index in first + shared..frames.len() {
            // SAFETY: the index is below the number of frames, and the context does not continue inside the hook.
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
                    // SAFETY: the frame keeps its entry alive.
                    let keeps_object = entry != 0 && unsafe { single_object::has_method(entry) };
                    let entry = if keeps_object { 0 } else { entry };
                    Some((FrameKind::Walked { iseq, entry }, position.raw()))
                }
                Running::Native => Some((FrameKind::Walked { iseq: 0, entry }, 0)),
                Running::Hidden => None,
            };
            leaf = match function {
                Some((function, position)) => {
                    let (stack, new) = tree.extend(leaf, function.key(), position);
                    if new {
                        announce(tree, stack, keepers, holder);
                    }
                    stack
                }
                None => {
                    tree.retain(leaf);
                    leaf
                }
            };
            // SAFETY: the frame is on the stack.
            seen.frames.push(Seen { frame: unsafe { SeenFrame::new(&frame, entry) }, stack: leaf });
        }
        tree.retain(leaf);
        leaf
    }

    /// Forgets what was seen of a context whose stacks now have another base.
    #[cold]
    fn begin_anew(&mut self, context: *const u8, first: usize, origin: Origin, holder: &mut Holder) {
        let mut base = self.base(origin, holder);
        if first > 0 {
            base = self.truncated(base);
        }
        let Self { tree, contexts, .. } = self;
        let seen = contexts.of(context, |stack| tree.release(stack));
        seen.forget(|stack| tree.release(stack));
        (seen.first, seen.thread, seen.labels, seen.base) = (first, origin.thread, origin.labels.cloned(), base);
    }

    /// Asks the VM for the frames of the running thread.
    ///
    /// # Safety
    /// Must be called in a hook; `holder` must be alive.
    unsafe fn profile_frames(&mut self, origin: Origin, holder: &mut Holder) -> StackId {
        let base = self.base(origin, holder);
        let max_frames = self.settings.max_frames;
        let (frames, lines) = &mut self.buffer;
        // One more than allowed, to see whether there are more.
        let room = max_frames + 1;
        frames.resize(room, 0);
        lines.resize(room, 0);
        // SAFETY: a hook runs on a Ruby thread.
        let count = unsafe { profile_frames::read(frames, lines) };
        let mut leaf = if count > max_frames { self.truncated(base) } else { base };
        let Self { tree, keepers, buffer: (frames, lines), .. } = self;
        for (&frame, &line) in frames.iter().zip(lines.iter()).take(count.min(max_frames)).rev() {
            // SAFETY: just read; inside the hook no frame ends.
            if !unsafe { profile_frames::is_shown(frame, line, leaf == base) } {
                continue;
            }
            let (stack, new) = tree.extend(leaf, FrameKind::Profiled(frame).key(), line.max(0) as u32);
            if new {
                announce(tree, stack, keepers, holder);
            }
            tree.release(leaf);
            leaf = stack;
        }
        leaf
    }
}

/// How many frames can be compared with what was seen. If the position of the innermost frame depends on what was
/// allocated, that frame cannot, unless it runs a C function.
#[inline]
fn comparable(frames: &ControlFrames) -> usize {
    let count = frames.len();
    // SAFETY: the index is that of the innermost frame, inside a hook.
    let varies = Position::ADVANCED && count > 0 && !unsafe { frames.get(count - 1).is_native() };
    count - usize::from(varies)
}

/// The outermost frame to read of a stack of `count`. Stacks that are too deep are cut in steps of a quarter of the
/// limit, so that those of a deep recursion still share their outer frames.
fn first_frame(count: usize, max_frames: usize) -> usize {
    if count <= max_frames {
        return 0;
    }
    let step = (max_frames / 4).max(1);
    (count - max_frames).div_ceil(step) * step
}
