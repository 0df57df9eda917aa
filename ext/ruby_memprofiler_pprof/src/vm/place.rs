//! Where a thread was when it ticked: its innermost frame, which a signal handler notes and a job looks for.
//!
//! A job runs at a safe point. Until then the C function in which the tick came may have called a block, or returned:
//! what a JIT compiler has made pops its frame without checking interrupts.

use super::frames::{ControlFrame, ControlFrames};
use super::iseq::imemo_type;
use super::object::read;
use super::{gc, layout, threads};
use rb_sys::VALUE;

/// The innermost frame of a thread at some time. Nothing that it refers to is kept alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickFrame {
    /// Where the control frame was.
    frame: usize,
    /// Its instruction sequence, or what a frame of a C function has there.
    iseq: usize,
    /// Its environment.
    environment: usize,
    /// The method entry of a C function; 0 in other frames, and if its environment is on Ruby's heap.
    entry: usize,
    /// The word `iseq` of the frame around it.
    caller: usize,
    /// How often garbage had been collected. None if a collection was marking, and may not have reached the entry, or if
    /// another thread had the GVL, which may have begun one at that moment.
    collections: Option<u32>,
}

impl TickFrame {
    /// Where a thread is, by its `rb_thread_t`; None while it begins or ends. Reads the VM's stack and counters only,
    /// nothing on Ruby's heap, so that it is safe in a signal handler.
    ///
    /// # Safety
    /// It must be the calling thread's, or one that has ended and has no frames.
    pub(super) unsafe fn of(thread: *const u8, has_gvl: bool) -> Option<Self> {
        // SAFETY: the thread exists. If it runs, it does so here, with or without the GVL, and nobody else changes its
        // context and their stack.
        let context = unsafe { threads::context_in(thread) };
        if context.is_null() {
            return None;
        }
        // SAFETY: the calling thread's context. The VM makes a frame the innermost after it has written it.
        let frames = unsafe { ControlFrames::of(context) };
        let innermost = frames.len().checked_sub(1)?;
        // SAFETY: the index is below the number of frames, and the thread does not continue inside the handler.
        let (frame, address) = unsafe { (frames.get(innermost), frames.address(innermost)) };
        // SAFETY: as above.
        let caller = innermost.checked_sub(1).map_or(0, |outer| unsafe { frames.get(outer) }.iseq());
        Some(Self {
            frame: address as usize,
            iseq: frame.iseq() as usize,
            environment: frame.ep() as usize,
            // SAFETY: the calling thread's context, and a frame of it.
            entry: unsafe { native_entry(context, address, &frame) },
            caller: caller as usize,
            collections: if has_gvl { gc::count_unless_marking() } else { None },
        })
    }

    /// The frames up to this place; and the method entry of the C function there, if it has returned since. If it cannot
    /// be told what ran there, those up to its caller; if not even that, all of them.
    ///
    /// # Safety
    /// The GVL must be held, and the context of `frames` must not have continued since they were read.
    pub unsafe fn cut(&self, frames: ControlFrames) -> (ControlFrames, Option<VALUE>) {
        let Some(index) = frames.index(self.frame) else { return (frames, None) };
        // SAFETY: the index is below the number of frames, and the context has not continued.
        let frame = |index: usize| (index < frames.len()).then(|| unsafe { frames.get(index) });
        // SAFETY: the frame was just read from the stack.
        if frame(index).is_some_and(|now| unsafe { self.is(&now) }) {
            return (frames.outermost(index + 1), None);
        }
        match index.checked_sub(1).and_then(frame) {
            Some(caller) if caller.iseq() as usize == self.caller => {
                // SAFETY: the GVL is held.
                (frames.outermost(index), unsafe { self.has_living_entry() }.then_some(self.entry as VALUE))
            }
            _ => (frames, None),
        }
    }

    /// Whether `frame`, at the same address, runs the same function.
    ///
    /// # Safety
    /// The frame must be on the stack.
    unsafe fn is(&self, frame: &ControlFrame) -> bool {
        // SAFETY: the frame is on the stack.
        let (is_native, entry) = unsafe { (frame.is_native(), frame.method_entry()) };
        let is_same = match self.entry {
            // The environment of Ruby code moves to the heap when a block is kept.
            0 => !is_native || frame.ep() as usize == self.environment,
            known => is_native && entry as usize == known,
        };
        is_same && frame.iseq() as usize == self.iseq
    }

    /// Whether the method entry is alive for certain: a frame used it, and no collection can have freed it since.
    ///
    /// # Safety
    /// The GVL must be held.
    unsafe fn has_living_entry(&self) -> bool {
        self.entry != 0
            && self.collections == Some(gc::count())
            // SAFETY: no collection has begun since a frame used it, and none does while the GVL is held.
            && unsafe { imemo_type(self.entry as VALUE) } == Some(layout::IMEMO_MENT)
    }
}

/// The method entry of the C function that `frame` runs; 0 if it runs something else, or if its environment has moved to
/// the heap, because its block was kept.
///
/// # Safety
/// The frame must be at `address` on the stack of the running `context`.
unsafe fn native_entry(context: *const u8, address: *const u8, frame: &ControlFrame) -> usize {
    // SAFETY: a context has this word. What is above the stack's bottom and below the frame is on the stack, with three
    // words to an environment.
    unsafe {
        let bottom = read(context, layout::EC_VM_STACK) + 2 * size_of::<VALUE>();
        if !(bottom..address as usize).contains(&(frame.ep() as usize)) {
            return 0;
        }
        if frame.is_function() { *frame.ep().sub(2) as usize } else { 0 }
    }
}
