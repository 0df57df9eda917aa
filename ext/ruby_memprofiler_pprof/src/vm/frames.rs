//! The control frames of an execution context, read directly from the VM's stack.
//!
//! Much of this mirrors `rb_profile_frames` and `rb_vm_frame_method_entry`, and is compared with them at start
//! (selftest.rs). Nothing here allocates, locks or calls into the VM.

use super::iseq::{self, imemo_type};
use super::layout::{self, Layout};
use super::object::{is_heap, read};
use super::position::Position;
use super::seen_frame::SeenFrame;
use rb_sys::VALUE;

/// Where this Ruby keeps what the walker reads; None for a minor version that layout.rs lacks.
pub const LAYOUT: Option<&Layout> = layout::for_version(super::RUBY_MAJOR, super::RUBY_MINOR);

/// The bytes from one control frame to the next; a constant, to speed up the loop over them.
const FRAME_SIZE: usize = match LAYOUT {
    Some(layout) => layout.cfp_size,
    None => 1,
};

/// How many frames are compared before counting them.
const STRIDE: usize = 4;

/// The words of a control frame that identify what runs in it.
#[derive(Debug, Clone, Copy)]
pub struct ControlFrame {
    /// The next instruction; undefined in frames of C functions, where JIT compilers leave it unset.
    pub pc: usize,
    /// The instruction sequence; in frames of C functions 0 or something else.
    pub iseq: VALUE,
    /// The environment: flags at 0, the previous environment at -1, method entry or cref at -2.
    pub ep: *const VALUE,
}

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
pub struct ControlFrames {
    /// One past the outermost frame: frames grow towards lower addresses.
    end: *const u8,
    count: usize,
}

impl ControlFrames {
    /// The frames of `context`; none if it has not begun to run.
    ///
    /// # Safety
    /// `context` must be the execution context of the running thread, as passed to a hook, or one in which nothing runs;
    /// [`LAYOUT`] must be known.
    #[inline]
    pub unsafe fn of(context: *const u8) -> Self {
        // SAFETY: according to the layout, these three words are in the context.
        let (stack, size, innermost) = unsafe {
            (read(context, layout::EC_VM_STACK), read(context, layout::EC_VM_STACK_SIZE), read(context, layout::EC_CFP))
        };
        let end = stack + size * size_of::<VALUE>();
        let known = stack != 0 && (stack..end).contains(&innermost);
        let count = if known { (end - innermost) / FRAME_SIZE } else { 0 };
        // The outermost frame is a dummy that vm.c pushes so that each frame has a previous one.
        Self { end: end.wrapping_sub(FRAME_SIZE) as *const u8, count: count.saturating_sub(1) }
    }

    /// The number of frames.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// How many of the frames from number `base` on still run what they ran when they were `seen`; stops at the first
    /// that does not. What was seen must be kept alive, so that its addresses keep their meaning.
    ///
    /// # Safety
    /// `base` and as many frames as were seen must be below `self.len()`, and the context must not have continued since
    /// [`of`](Self::of).
    #[inline]
    pub unsafe fn unchanged<T: AsRef<SeenFrame>>(&self, base: usize, seen: &[T]) -> usize {
        let first = self.end.wrapping_sub((base + 1) * FRAME_SIZE);
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
        unsafe { ControlFrame::at(self.end.sub((index + 1) * FRAME_SIZE)) }
    }

    /// The receiver in frame number `index`.
    ///
    /// # Safety
    /// As for [`get`](Self::get).
    pub unsafe fn receiver(&self, index: usize) -> VALUE {
        // SAFETY: the frame is on the VM stack, and has this word at the layout's offset.
        unsafe { read(self.end.sub((index + 1) * FRAME_SIZE), layout::CFP_SELF) as VALUE }
    }
}

impl ControlFrame {
    /// # Safety
    /// There must be a control frame at the address.
    #[inline]
    pub(super) unsafe fn at(frame: *const u8) -> Self {
        // SAFETY: there is a control frame, which has these three words at the layout's offsets.
        unsafe {
            Self {
                pc: read(frame, layout::CFP_PC),
                iseq: read(frame, layout::CFP_ISEQ) as VALUE,
                ep: read(frame, layout::CFP_EP) as *const VALUE,
            }
        }
    }

    /// The method entry of the frame, or 0 outside methods. Like `rb_vm_frame_method_entry`, looks in the frame's own
    /// environment and in those around it.
    ///
    /// # Safety
    /// The frame must be on the stack.
    pub unsafe fn method_entry(&self) -> VALUE {
        let mut ep = self.ep;
        loop {
            // SAFETY: an environment has these three words, and lives no longer than the one it was created in.
            let (flags, previous, entry) = unsafe { (*ep, *ep.sub(1), *ep.sub(2)) };
            let local = flags & layout::VM_ENV_FLAG_LOCAL as VALUE != 0;
            // SAFETY: the word holds a cref, method entry or svar, all objects on the heap, or false.
            if let Some(entry) = unsafe { as_method_entry(entry, local) } {
                return entry;
            }
            if local {
                return 0;
            }
            // The low two bits of the word are flags of the block handler.
            ep = (previous & !3) as *const VALUE;
        }
    }

    /// Whether C code runs in the frame: a C function or a block of one.
    ///
    /// # Safety
    /// The frame must be on the stack.
    pub unsafe fn is_native(&self) -> bool {
        // SAFETY: the environment of a frame on the stack has its three words.
        (unsafe { *self.ep }) as usize & layout::VM_FRAME_FLAG_CFRAME != 0
    }

    /// What runs in the frame.
    ///
    /// # Safety
    /// The frame must be on the stack, and `entry` must be its method entry.
    pub unsafe fn running(&self, entry: VALUE) -> Running {
        // SAFETY: the environment of a frame on the stack has its three words.
        let frame_flags = unsafe { *self.ep } as usize;
        if frame_flags & layout::VM_FRAME_FLAG_CFRAME != 0 {
            let is_function = frame_flags & layout::VM_FRAME_MAGIC_MASK == layout::VM_FRAME_MAGIC_CFUNC;
            return if is_function && entry != 0 { Running::Native } else { Running::Hidden };
        }
        if self.pc == 0 || !is_heap(self.iseq) {
            return Running::Hidden;
        }
        // SAFETY: a frame that runs Ruby code refers to a compiled instruction sequence.
        let (encoded, size) = unsafe { iseq::code(self.iseq) };
        let offset = self.pc.wrapping_sub(encoded) / size_of::<VALUE>();
        // The program counter is past the current instruction, except before the first one.
        let index = offset.saturating_sub(1);
        match Position::new(index) {
            Some(position) if index < size as usize => Running::Ruby { iseq: self.iseq, position },
            _ => Running::Hidden,
        }
    }
}

/// `check_method_entry` of vm_insnhelper.c. In a local environment, an svar can precede the entry.
///
/// # Safety
/// `word` must be the third word of an environment in use.
unsafe fn as_method_entry(word: VALUE, local: bool) -> Option<VALUE> {
    // SAFETY: the environment keeps the object alive.
    match unsafe { imemo_type(word) }? {
        layout::IMEMO_MENT => Some(word),
        layout::IMEMO_SVAR if local => {
            // SAFETY: the environment keeps the svar alive, a struct vm_svar, which has this word at the layout's
            // offset.
            let inner = unsafe { read(word as *const u8, layout::SVAR_CREF_OR_ME) } as VALUE;
            // SAFETY: the svar keeps the object alive.
            unsafe { as_method_entry(inner, false) }
        }
        _ => None,
    }
}
