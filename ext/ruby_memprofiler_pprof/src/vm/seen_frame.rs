//! What is remembered of a control frame, to find out later whether it still runs the same code.

use super::frames::ControlFrame;
use super::iseq;
use super::layout;
use super::object::read;
use rb_sys::VALUE;

/// Whether frames of C code have no program counter. On newer Rubies JIT compilers leave there what was there before.
const NATIVE_PC_IS_NULL: bool = cfg!(not(ruby_gte_3_3));

/// A control frame as it was at an earlier time.
#[derive(Debug, Clone, Copy)]
pub struct SeenFrame {
    pc: usize,
    iseq: VALUE,
    /// The frame's method entry, or one of the following constants, which differ from every word of an environment.
    entry: VALUE,
}

/// The frame has no method entry, but a block's frame in the same place may have one.
const NO_ENTRY: VALUE = 1;
/// The frame has no method entry, and no frame that runs the same code can have one: it is the body of a file or class.
const NEVER_AN_ENTRY: VALUE = 3;
/// The frame is a block of C code, whose entry is that of a function around it. Where `is_surely_at` looks at no
/// instruction sequence, it would take the frame of that function for this one.
const BLOCK_OF_C: VALUE = 5;

impl SeenFrame {
    /// Remembers `frame`, whose method entry is `entry` or 0.
    ///
    /// # Safety
    /// The frame must be on the stack.
    pub unsafe fn new(frame: &ControlFrame, entry: VALUE) -> Self {
        let entry = match entry {
            // SAFETY: a frame that runs Ruby code refers to an instruction sequence.
            0 if !unsafe { frame.is_native() } && unsafe { iseq::is_body(frame.iseq()) } => NEVER_AN_ENTRY,
            0 => NO_ENTRY,
            // Of frames with an instruction sequence, or what C code has in its place, only these have no counter.
            _ if NATIVE_PC_IS_NULL && frame.pc() == 0 && frame.iseq() != 0 => BLOCK_OF_C,
            _ => entry,
        };
        Self { pc: frame.pc(), iseq: frame.iseq(), entry }
    }

    /// Whether the frame `at` an address runs what it ran then, judged by two words: the fast path for most frames. A
    /// program counter points into the code of exactly one instruction sequence. Most frames' environments name the
    /// method entry directly, and as long as that is kept alive, nothing else can have its address.
    ///
    /// # Safety
    /// There must be a control frame at the address.
    #[inline]
    pub(super) unsafe fn is_surely_at(&self, at: *const u8) -> bool {
        // SAFETY: there is a control frame, which has these words at the layout's offsets; its environment has three
        // words.
        unsafe {
            read(at, layout::CFP_PC) == self.pc
                && (NATIVE_PC_IS_NULL || read(at, layout::CFP_ISEQ) as VALUE == self.iseq)
                && (*(read(at, layout::CFP_EP) as *const VALUE).sub(2) == self.entry || self.entry == NEVER_AN_ENTRY)
        }
    }

    /// Whether the frame `at` an address runs what it ran then.
    ///
    /// # Safety
    /// There must be a control frame at the address.
    #[inline(never)]
    pub(super) unsafe fn is_at(&self, at: *const u8) -> bool {
        // SAFETY: there is a control frame at this address, which is on the stack with its environment of three words.
        unsafe {
            let frame = ControlFrame::at(at);
            if frame.iseq() != self.iseq {
                return false;
            }
            if frame.pc() != self.pc {
                // It says nothing of a C function, which is identified by its method entry: only its own frame has that.
                return !NATIVE_PC_IS_NULL && *frame.ep().sub(2) == self.entry && frame.is_function();
            }
            self.is_entry_of(frame.ep())
                || self.entry == BLOCK_OF_C
                || Self::new(&frame, frame.method_entry()).entry == self.entry
        }
    }

    /// Whether the first method entry in `environment` or those around it is this one; false also if that takes more to
    /// find out. Blocks name nothing.
    ///
    /// # Safety
    /// It must be the environment of a frame on the stack.
    #[inline(always)]
    unsafe fn is_entry_of(&self, mut environment: *const VALUE) -> bool {
        loop {
            // SAFETY: an environment has three words, and lives no longer than the one it was created in, up to a local
            // one, which is the last.
            unsafe {
                let word = *environment.sub(2);
                if word != 0 {
                    return word == self.entry;
                }
                if *environment as usize & layout::VM_ENV_FLAG_LOCAL != 0 {
                    return self.entry == NO_ENTRY;
                }
                // The low two bits of the word are flags of the block handler.
                environment = (*environment.sub(1) & !3) as *const VALUE;
            }
        }
    }
}
