//! The control frames of an execution context, read straight from the VM's stack.
//!
//! Much of this mirrors `rb_profile_frames` and `rb_vm_frame_method_entry`, and is compared with them at start
//! (selftest.rs). Nothing here allocates, locks or calls into the VM.

use super::layout::{self, Layout};
use super::object::{Type, flags, is_heap};
use super::position::Position;
use rb_sys::VALUE;

/// Where this Ruby keeps what the walker reads; None for a minor version that layout.rs does not know.
pub const LAYOUT: Option<&Layout> = layout::for_version(super::RUBY_MAJOR, super::RUBY_MINOR);

/// The bytes from one control frame to the next; a constant, for the sake of the loop over them.
const FRAME_SIZE: usize = match LAYOUT {
    Some(layout) => layout.cfp_size,
    None => 1,
};

/// Whether frames of C code have no program counter. On newer Rubies JIT compilers leave it as it was.
const NATIVE_PC_IS_NULL: bool = cfg!(not(ruby_gte_3_3));

/// The words of a control frame that identify what runs in it.
#[derive(Debug, Clone, Copy)]
pub struct ControlFrame {
    /// The next instruction; anything in frames of C functions, where JIT compilers leave it unset.
    pub pc: usize,
    /// The instruction sequence; in frames of C functions 0 or something else.
    pub iseq: VALUE,
    /// The environment: flags at 0, the previous environment at -1, method entry or cref at -2.
    pub ep: *const VALUE,
}

/// A control frame as it was at an earlier time.
#[derive(Debug, Clone, Copy)]
pub struct SeenFrame {
    pc: usize,
    iseq: VALUE,
    /// The frame's method entry, or one of the following, which are not equal to any word of an environment.
    entry: VALUE,
}

/// The frame has no method entry, but one of a block in the same place may have one.
const NO_ENTRY: VALUE = 1;
/// The frame has no method entry, and none that runs the same code can have one: it is the body of a file or class.
const NEVER_AN_ENTRY: VALUE = 3;

impl SeenFrame {
    /// Remembers `frame`, whose method entry is `entry` or 0.
    ///
    /// # Safety
    /// The frame must be on the stack.
    pub unsafe fn new(frame: &ControlFrame, entry: VALUE) -> Self {
        let entry = match entry {
            // SAFETY: a frame that runs Ruby code refers to an instruction sequence.
            0 if !unsafe { frame.is_native() } && unsafe { is_body(frame.iseq) } => NEVER_AN_ENTRY,
            0 => NO_ENTRY,
            _ => entry,
        };
        Self { pc: frame.pc, iseq: frame.iseq, entry }
    }

    /// Whether the frame `at` an address runs what it ran then, judged by two words: the quick answer for most frames. A
    /// program counter leads into the code of one instruction sequence only, and the environment of most frames itself
    /// names their method entry, which nothing else can be called by while it is kept alive.
    ///
    /// # Safety
    /// There must be a control frame at the address.
    #[inline]
    unsafe fn is_surely_at(&self, at: *const u8) -> bool {
        // SAFETY: by the layout; the environment of a frame on the stack has its three words.
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
    #[cold]
    #[inline(never)]
    unsafe fn is_at(&self, at: *const u8) -> bool {
        // SAFETY: the caller's promise.
        let frame = unsafe { ControlFrame::at(at) };
        frame.pc == self.pc
            && frame.iseq == self.iseq
            // SAFETY: the caller's promise.
            && unsafe { Self::new(&frame, frame.method_entry()) }.entry == self.entry
    }
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
    /// A C function, known by its method entry alone.
    Native,
    /// Something that Ruby's backtraces do not show.
    Hidden,
}

/// The control frames of one execution context, from the outermost, which is number 0, to the innermost.
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
    /// `context` must be the execution context of the running thread, as passed to a hook, and [`LAYOUT`] be known.
    #[inline]
    pub unsafe fn of(context: *const u8) -> Self {
        // SAFETY: the layout says that these three words lie in the context.
        let (stack, size, innermost) = unsafe {
            (read(context, layout::EC_VM_STACK), read(context, layout::EC_VM_STACK_SIZE), read(context, layout::EC_CFP))
        };
        let end = stack + size * size_of::<VALUE>();
        let known = stack != 0 && (stack..end).contains(&innermost);
        let count = if known { (end - innermost) / FRAME_SIZE } else { 0 };
        // The outermost frame is a dummy that vm.c pushes so that each frame has a previous one.
        Self { end: end.wrapping_sub(FRAME_SIZE) as *const u8, count: count.saturating_sub(1) }
    }

    /// How many frames there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// How many of the frames from number `base` on run what they ran when they were `seen`; the rest is not looked at.
    /// What was seen must be kept alive, lest its addresses mean something else by now.
    ///
    /// # Safety
    /// `base` and as many frames as were seen are below `self.len()`, and the context has not run on since
    /// [`of`](Self::of).
    #[inline]
    pub unsafe fn unchanged<'a>(&self, base: usize, seen: impl Iterator<Item = &'a SeenFrame>) -> usize {
        let first = self.end.wrapping_sub((base + 1) * FRAME_SIZE);
        let mut at = first;
        for seen in seen {
            // SAFETY: there is a frame at this address, as the caller promises, and its environment has three words.
            if !unsafe { seen.is_surely_at(at) || seen.is_at(at) } {
                break;
            }
            at = at.wrapping_sub(FRAME_SIZE);
        }
        // A counter would cost one more instruction per frame.
        (first as usize - at as usize) / FRAME_SIZE
    }

    /// Frame number `index`.
    ///
    /// # Safety
    /// `index < self.len()`, and the context has not run on since [`of`](Self::of).
    #[inline]
    pub unsafe fn get(&self, index: usize) -> ControlFrame {
        // SAFETY: the frame lies on the VM stack between the innermost frame and its end.
        unsafe { ControlFrame::at(self.end.sub((index + 1) * FRAME_SIZE)) }
    }
}

impl ControlFrame {
    /// # Safety
    /// There must be a control frame at the address.
    #[inline]
    unsafe fn at(frame: *const u8) -> Self {
        // SAFETY: by the layout.
        unsafe {
            Self {
                pc: read(frame, layout::CFP_PC),
                iseq: read(frame, layout::CFP_ISEQ) as VALUE,
                ep: read(frame, layout::CFP_EP) as *const VALUE,
            }
        }
    }

    /// The method entry of the frame, or 0 outside of methods: that of its own environment or of one that it is nested
    /// in, as `rb_vm_frame_method_entry` finds it.
    ///
    /// # Safety
    /// The frame must be on the stack.
    pub unsafe fn method_entry(&self) -> VALUE {
        let mut ep = self.ep;
        loop {
            // SAFETY: an environment has these three words, and the one it was created in lives as long as itself.
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
    /// The frame must be on the stack, and `entry` be its method entry.
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
        let (encoded, size) = unsafe { iseq_code(self.iseq) };
        let offset = self.pc.wrapping_sub(encoded) / size_of::<VALUE>();
        // The program counter is past the instruction under way, except before the first one.
        let index = offset.saturating_sub(1);
        match Position::new(index) {
            Some(position) if index < size as usize => Running::Ruby { iseq: self.iseq, position },
            _ => Running::Hidden,
        }
    }
}

/// Address and length, in words, of the code of `iseq`.
///
/// # Safety
/// `iseq` must be a compiled instruction sequence that is alive.
unsafe fn iseq_code(iseq: VALUE) -> (usize, u32) {
    // SAFETY: by the layout.
    unsafe {
        let body = read(iseq as *const u8, layout::ISEQ_BODY) as *const u8;
        let size = body.add(layout::ISEQ_BODY_ISEQ_SIZE).cast::<u32>().read();
        (read(body, layout::ISEQ_BODY_ISEQ_ENCODED), size)
    }
}

/// Whether a JIT compiler has made something of `iseq`.
///
/// # Safety
/// `iseq` must be a live instruction sequence.
pub unsafe fn is_compiled(iseq: VALUE) -> bool {
    // SAFETY: by the layout.
    LAYOUT.is_some_and(|layout| unsafe {
        read(read(iseq as *const u8, layout::ISEQ_BODY) as *const u8, layout.iseq_body_compiled) != 0
    })
}

/// Whether `iseq` is the body of a file or class, which no method is made of.
///
/// # Safety
/// `iseq` must be 0 or a live instruction sequence.
unsafe fn is_body(iseq: VALUE) -> bool {
    if iseq == 0 {
        return false;
    }
    // SAFETY: by the layout.
    let kind = unsafe {
        (read(iseq as *const u8, layout::ISEQ_BODY) as *const u8).add(layout::ISEQ_BODY_TYPE).cast::<u32>().read()
    };
    matches!(kind as usize, layout::ISEQ_TYPE_TOP | layout::ISEQ_TYPE_CLASS | layout::ISEQ_TYPE_MAIN)
}

/// What kind of internal object a T_IMEMO is, or None for any other object.
///
/// # Safety
/// `object` must be alive if it is a heap reference.
pub unsafe fn imemo_type(object: VALUE) -> Option<usize> {
    if !is_heap(object) {
        return None;
    }
    // SAFETY: the caller's promise.
    let flags = unsafe { flags(object) };
    (Type::of_flags(flags) == Type::IMEMO)
        .then_some((flags as usize >> layout::IMEMO_TYPE_SHIFT) & layout::IMEMO_TYPE_MASK)
}

/// `check_method_entry` of vm_insnhelper.c. An svar, which only a local environment has, stands before the entry.
///
/// # Safety
/// `word` must be the third word of an environment in use.
unsafe fn as_method_entry(word: VALUE, local: bool) -> Option<VALUE> {
    // SAFETY: the environment keeps the object alive.
    match unsafe { imemo_type(word) }? {
        layout::IMEMO_MENT => Some(word),
        layout::IMEMO_SVAR if local => {
            // SAFETY: by the layout of struct vm_svar.
            let inner = unsafe { read(word as *const u8, layout::SVAR_CREF_OR_ME) } as VALUE;
            // SAFETY: the svar keeps the object alive.
            unsafe { as_method_entry(inner, false) }
        }
        _ => None,
    }
}

/// The word at `offset` bytes from `base`.
///
/// # Safety
/// The word must be readable and aligned.
#[inline]
unsafe fn read(base: *const u8, offset: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { base.add(offset).cast::<usize>().read() }
}
