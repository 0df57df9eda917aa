//! Where a thread was when it ticked: its innermost frame, which a signal handler notes and a job looks for.
//!
//! A job runs at a safe point. Until then the C function in which the tick came may have called a block, or returned:
//! what a JIT compiler has made pops its frame without checking interrupts.

use super::frames::{ControlFrame, ControlFrames};
use super::iseq::imemo_type;
use super::object::read;
use super::{gc, layout, threads};
use rb_sys::VALUE;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// The innermost frame of a thread at some time. Nothing that it refers to is kept alive.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Where the control frame was.
    frame: usize,
    /// Its instruction sequence, or what a frame of a C function has there.
    iseq: usize,
    /// The method entry of a C function; 0 in other frames.
    entry: usize,
    /// The word `iseq` of the frame around it.
    caller: usize,
    /// How often garbage had been collected.
    collections: u32,
}

impl Place {
    /// Where `thread`, an `rb_thread_t`, is; None while it begins or ends. Reads the VM's stack and counters only,
    /// nothing on Ruby's heap, so that it is safe in a signal handler.
    ///
    /// # Safety
    /// It must be the calling native thread's, which must have the GVL.
    unsafe fn of(thread: *const u8) -> Option<Self> {
        // SAFETY: the running thread exists.
        let context = unsafe { threads::context_in(thread) };
        if context.is_null() {
            return None;
        }
        // SAFETY: the running thread's context. The VM makes a frame the innermost after it has written it.
        let frames = unsafe { ControlFrames::of(context) };
        let innermost = frames.len().checked_sub(1)?;
        // SAFETY: the index is below the number of frames, and the thread does not continue inside the handler.
        let (frame, address) = unsafe { (frames.get(innermost), frames.address(innermost)) };
        // SAFETY: as above.
        let caller = innermost.checked_sub(1).map_or(0, |outer| unsafe { frames.get(outer) }.iseq);
        // SAFETY: the running thread's context, and a frame of it.
        let entry = unsafe { native_entry(context, address, &frame) };
        let collections = gc::count();
        Some(Self { frame: address as usize, iseq: frame.iseq as usize, entry, caller: caller as usize, collections })
    }

    /// The frames up to this place; and the method entry of the C function there, if it has returned since. All frames
    /// if it cannot be told any more where the place was.
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
        let caller = index.checked_sub(1).and_then(frame);
        if caller.is_some_and(|caller| caller.iseq as usize == self.caller) && self.has_living_entry() {
            return (frames.outermost(index), Some(self.entry as VALUE));
        }
        (frames, None)
    }

    /// Whether `frame`, at the same address, runs the same function.
    ///
    /// # Safety
    /// The frame must be on the stack.
    unsafe fn is(&self, frame: &ControlFrame) -> bool {
        // SAFETY: the frame is on the stack.
        let (is_native, entry) = unsafe { (frame.is_native(), frame.method_entry()) };
        let is_same = if self.entry == 0 { !is_native } else { is_native && entry as usize == self.entry };
        is_same && frame.iseq as usize == self.iseq
    }

    /// Whether the method entry is still one. It was alive, since a frame used it, and no collection has begun since. One
    /// that was under way may have freed it if the method was redefined at that very time, but then its slot is empty.
    fn has_living_entry(&self) -> bool {
        self.entry != 0
            && gc::count() == self.collections
            // SAFETY: a slot of Ruby's heap.
            && unsafe { imemo_type(self.entry as VALUE) } == Some(layout::IMEMO_MENT)
    }
}

/// The method entry of the C function that `frame` runs; 0 if it runs something else.
///
/// # Safety
/// The frame must be at `address` on the stack of the running `context`.
unsafe fn native_entry(context: *const u8, address: *const u8, frame: &ControlFrame) -> usize {
    // SAFETY: a context has this word. Environments are below the frames, unless they have moved to the heap, which
    // those of C functions do not.
    unsafe {
        let bottom = read(context, layout::EC_VM_STACK) + 2 * size_of::<VALUE>();
        if !(bottom..address as usize).contains(&(frame.ep as usize)) {
            return 0;
        }
        let is_function = *frame.ep as usize & layout::VM_FRAME_MAGIC_MASK == layout::VM_FRAME_MAGIC_CFUNC;
        if is_function { *frame.ep.sub(2) as usize } else { 0 }
    }
}

/// The latest place of one thread. A place that is read while the thread's handler writes another matches no frame.
#[derive(Debug)]
pub struct Note {
    /// The `rb_thread_t`; null if no places are noted.
    thread: AtomicPtr<u8>,
    /// 0 if there is no place.
    frame: AtomicUsize,
    iseq: AtomicUsize,
    entry: AtomicUsize,
    caller: AtomicUsize,
    collections: AtomicU32,
}

impl Note {
    /// Of no thread.
    pub const fn new() -> Self {
        Self {
            thread: AtomicPtr::new(null_mut()),
            frame: AtomicUsize::new(0),
            iseq: AtomicUsize::new(0),
            entry: AtomicUsize::new(0),
            caller: AtomicUsize::new(0),
            collections: AtomicU32::new(0),
        }
    }

    /// Has the places of `thread` noted from now on, an `rb_thread_t`, or none if it is null.
    ///
    /// # Safety
    /// It must exist, and be that of the thread that calls [`write`](Self::write), until another one is set.
    pub unsafe fn follow(&self, thread: *const u8) {
        self.frame.store(0, Ordering::Relaxed);
        self.thread.store(thread.cast_mut(), Ordering::Release);
    }

    /// Notes where the calling thread is.
    ///
    /// # Safety
    /// The calling native thread must have the GVL.
    pub unsafe fn write(&self) {
        let thread = self.thread.load(Ordering::Acquire);
        if thread.is_null() {
            return;
        }
        // SAFETY: it is the calling thread, as `follow` requires, and it has the GVL.
        let Some(place) = (unsafe { Place::of(thread) }) else { return };
        self.frame.store(0, Ordering::Relaxed);
        self.iseq.store(place.iseq, Ordering::Relaxed);
        self.entry.store(place.entry, Ordering::Relaxed);
        self.caller.store(place.caller, Ordering::Relaxed);
        self.collections.store(place.collections, Ordering::Relaxed);
        self.frame.store(place.frame, Ordering::Release);
    }

    /// Takes the latest place, if there is one.
    pub fn take(&self) -> Option<Place> {
        let frame = self.frame.swap(0, Ordering::Acquire);
        (frame != 0).then(|| Place {
            frame,
            iseq: self.iseq.load(Ordering::Relaxed),
            entry: self.entry.load(Ordering::Relaxed),
            caller: self.caller.load(Ordering::Relaxed),
            collections: self.collections.load(Ordering::Relaxed),
        })
    }
}
