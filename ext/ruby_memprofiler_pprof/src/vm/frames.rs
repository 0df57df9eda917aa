//! The control frames of an execution context of this process, read directly from the VM's stack by the walker of the
//! crate ruby_layout.
//!
//! What it reads is compared with what `rb_profile_frames` says at start (selftest.rs). Nothing here allocates, locks
//! or calls into the VM.

use super::layout::{self, Layout};
use super::object::read;
use super::position::Position;
use super::seen_frame::SeenFrame;
use rb_sys::VALUE;
use ruby_layout::frames::{self, Frame, Frames};
use ruby_layout::memory::OwnMemory;

/// Where this Ruby keeps what the walker reads; None for a minor version that the crate lacks.
pub const LAYOUT: Option<&Layout> = layout::for_version(super::RUBY_MAJOR, super::RUBY_MINOR);

/// That of the oldest minor stands for an unknown one, which is not walked.
pub(super) const KNOWN: &Layout = match LAYOUT {
    Some(layout) => layout,
    None => layout::OLDEST,
};

/// The bytes from one control frame to the next; a constant, to speed up the loop over them.
const FRAME_SIZE: usize = KNOWN.cfp_size;

/// How many frames are compared before counting them.
const STRIDE: usize = 4;

/// The words of a control frame that identify what runs in it.
#[derive(Debug, Clone, Copy)]
pub struct ControlFrame(Frame);

/// What runs in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Running {
    /// Ruby code.
    Ruby {
        /// The instruction sequence.
        iseq: VALUE,
        /// Where in it.
        position: Position,
    },
    /// A C function, identified by its method entry alone.
    Native,
    /// Something that Ruby's backtraces do not show.
    Hidden,
}

/// The control frames of one execution context. Number 0 is the outermost.
#[derive(Debug, Clone, Copy)]
pub struct ControlFrames(Frames);

impl ControlFrames {
    /// The frames of `context`; none if it has not begun to run.
    ///
    /// # Safety
    /// `context` must be the execution context of the running thread, as passed to a hook, or one in which nothing
    /// runs; [`LAYOUT`] must be known.
    #[inline]
    pub unsafe fn of(context: *const u8) -> Self {
        // SAFETY: according to the layout, all that is read is in the context.
        let memory = unsafe { OwnMemory::new() };
        let Ok(frames) = Frames::of(&memory, KNOWN, context as usize);
        Self(frames)
    }

    /// The number of frames.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.count
    }

    /// How many of the frames from number `base` on still run what they ran when they were `seen`; stops at the first
    /// that does not. What was seen must be kept alive, so that its addresses keep their meaning.
    ///
    /// # Safety
    /// `base` and as many frames as were seen must be below `self.len()`, and the context must not have continued since
    /// [`of`](Self::of).
    #[inline]
    pub unsafe fn unchanged<T: AsRef<SeenFrame>>(&self, base: usize, seen: &[T]) -> usize {
        let first = self.address(base);
        // SAFETY: as many frames as were seen follow the first, so there is one at each address that is read.
        let same = |seen: &T, at| unsafe { seen.as_ref().is_surely_at(at) || seen.as_ref().is_at(at) };
        let mut count = 0;
        for some in seen.chunks_exact(STRIDE) {
            let at = first.wrapping_sub(count * FRAME_SIZE);
            if !some.iter().enumerate().all(|(number, seen)| same(seen, at.wrapping_sub(number * FRAME_SIZE))) {
                break;
            }
            count += STRIDE;
        }
        let rest = seen.iter().enumerate().skip(count);
        count + rest.take_while(|&(number, seen)| same(seen, first.wrapping_sub(number * FRAME_SIZE))).count()
    }

    /// Frame number `index`.
    ///
    /// # Safety
    /// `index` must be below `self.len()`, and the context must not have continued since [`of`](Self::of).
    #[inline]
    pub unsafe fn get(&self, index: usize) -> ControlFrame {
        // SAFETY: the frame is on the VM stack, between the innermost frame and its end.
        unsafe { ControlFrame::at(self.address(index)) }
    }

    /// The receiver in frame number `index`.
    ///
    /// # Safety
    /// As for [`get`](Self::get).
    pub unsafe fn receiver(&self, index: usize) -> VALUE {
        // SAFETY: the frame is on the VM stack, and has this word at the layout's offset.
        unsafe { read(self.address(index), layout::CFP_SELF) as VALUE }
    }

    /// Where frame number `index` is, or would be.
    #[inline(always)]
    pub(super) fn address(&self, index: usize) -> *const u8 {
        self.0.address(KNOWN, index) as *const u8
    }

    /// The number of the frame at an address, or of the one that would be there; the inverse of
    /// [`address`](Self::address). None if no frame can be.
    pub(super) fn index(&self, address: usize) -> Option<usize> {
        let bytes = self.0.end.checked_sub(address)?;
        (bytes % FRAME_SIZE == 0).then_some(bytes / FRAME_SIZE)?.checked_sub(1)
    }

    /// The outermost `count` of them.
    pub(super) fn outermost(self, count: usize) -> Self {
        Self(Frames { count: count.min(self.0.count), ..self.0 })
    }
}

impl ControlFrame {
    /// # Safety
    /// There must be a control frame at the address.
    #[inline]
    pub(super) unsafe fn at(frame: *const u8) -> Self {
        // SAFETY: there is a control frame, which has the words that are read.
        let memory = unsafe { OwnMemory::new() };
        let Ok(frame) = Frame::at(&memory, frame as usize);
        Self(frame)
    }

    /// The next instruction; undefined in frames of C functions, where JIT compilers leave it unset.
    #[inline(always)]
    pub fn pc(&self) -> usize {
        self.0.pc
    }

    /// The instruction sequence; in frames of C functions 0 or something else.
    #[inline(always)]
    pub fn iseq(&self) -> VALUE {
        self.0.iseq as VALUE
    }

    /// The environment: flags at 0, the previous environment at -1, method entry or cref at -2.
    #[inline(always)]
    pub fn ep(&self) -> *const VALUE {
        self.0.ep as *const VALUE
    }

    /// The method entry of the frame, or 0 outside methods. Like `rb_vm_frame_method_entry`, looks in the frame's own
    /// environment and in those around it.
    ///
    /// # Safety
    /// The frame must be on the stack.
    pub unsafe fn method_entry(&self) -> VALUE {
        // SAFETY: an environment has three words, and lives no longer than the one it was created in; the third is an
        // object on the heap or false.
        let memory = unsafe { OwnMemory::new() };
        let Ok(entry) = self.0.method_entry(&memory);
        entry as VALUE
    }

    /// Whether C code runs in the frame: a C function or a block of one.
    ///
    /// # Safety
    /// The frame must be on the stack.
    pub unsafe fn is_native(&self) -> bool {
        // SAFETY: the environment of a frame on the stack has its three words.
        let memory = unsafe { OwnMemory::new() };
        let Ok(native) = self.0.is_native(&memory);
        native
    }

    /// Whether it is the frame of a C function itself.
    ///
    /// # Safety
    /// The frame must be on the stack.
    pub unsafe fn is_function(&self) -> bool {
        // SAFETY: the environment of a frame on the stack has its three words.
        let memory = unsafe { OwnMemory::new() };
        let Ok(function) = self.0.is_function(&memory);
        function
    }

    /// What runs in the frame.
    ///
    /// # Safety
    /// The frame must be on the stack, and `entry` must be its method entry.
    pub unsafe fn running(&self, entry: VALUE) -> Running {
        // SAFETY: the environment of a frame on the stack has its three words; one that runs Ruby code refers to a
        // compiled instruction sequence.
        let memory = unsafe { OwnMemory::new() };
        let Ok(running) = self.0.running(&memory, entry as usize);
        match running {
            frames::Running::Ruby { index } => match Position::new(index) {
                Some(position) => Running::Ruby { iseq: self.iseq(), position },
                None => Running::Hidden,
            },
            frames::Running::Native => Running::Native,
            frames::Running::Hidden => Running::Hidden,
        }
    }
}
