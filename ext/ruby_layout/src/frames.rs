//! The control frames of an execution context, wherever that is.
//!
//! Much of this mirrors `rb_profile_frames` and `rb_vm_frame_method_entry` of vm_backtrace.c and vm_insnhelper.c.
//! Nothing here allocates or locks.

use crate::iseq::{self, imemo_type};
use crate::layout::{self, Layout};
use crate::memory::Memory;
use crate::object::is_heap;

const WORD: usize = size_of::<usize>();
/// The environments around one are as many as the blocks around a block: more are not real.
const MOST_ENVIRONMENTS: usize = 4096;

/// Where the control frames of one execution context are. Number 0 is the outermost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames {
    /// One past the outermost frame: frames grow towards lower addresses.
    pub end: usize,
    /// How many there are.
    pub count: usize,
}

impl Frames {
    /// Those of `context`; none if it has not begun to run.
    #[inline(always)]
    pub fn of<M: Memory>(memory: &M, layout: &Layout, context: usize) -> Result<Self, M::Error> {
        let stack = memory.word(context.wrapping_add(layout::EC_VM_STACK))?;
        let size = memory.word(context.wrapping_add(layout::EC_VM_STACK_SIZE))?;
        let innermost = memory.word(context.wrapping_add(layout::EC_CFP))?;
        let end = stack.wrapping_add(size.wrapping_mul(WORD));
        let known = stack != 0 && (stack..end).contains(&innermost);
        let count = if known { (end - innermost) / layout.cfp_size } else { 0 };
        // The outermost frame is a dummy that vm.c pushes so that each frame has a previous one.
        Ok(Self { end: end.wrapping_sub(layout.cfp_size), count: count.saturating_sub(1) })
    }

    /// Where frame number `index` is.
    #[inline(always)]
    pub fn address(&self, layout: &Layout, index: usize) -> usize {
        self.end.wrapping_sub(index.wrapping_add(1).wrapping_mul(layout.cfp_size))
    }
}

/// The words of a control frame that identify what runs in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The next instruction; undefined in frames of C functions, where JIT compilers leave it unset.
    pub pc: usize,
    /// The instruction sequence; in frames of C functions 0 or something else.
    pub iseq: usize,
    /// The environment: flags at 0, the previous environment at -1, method entry or cref at -2.
    pub ep: usize,
}

/// What runs in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Running {
    /// Ruby code.
    Ruby {
        /// The number of a word of the code: of the current instruction or an operand of it.
        index: usize,
    },
    /// A C function, identified by its method entry alone.
    Native,
    /// Something that Ruby's backtraces do not show.
    Hidden,
}

impl Frame {
    /// The frame at an address.
    #[inline(always)]
    pub fn at<M: Memory>(memory: &M, address: usize) -> Result<Self, M::Error> {
        Ok(Self {
            pc: memory.word(address.wrapping_add(layout::CFP_PC))?,
            iseq: memory.word(address.wrapping_add(layout::CFP_ISEQ))?,
            ep: memory.word(address.wrapping_add(layout::CFP_EP))?,
        })
    }

    /// The method entry of the frame, or 0 outside methods. Like `rb_vm_frame_method_entry`, looks in the frame's own
    /// environment and in those around it.
    #[inline(always)]
    pub fn method_entry<M: Memory>(&self, memory: &M) -> Result<usize, M::Error> {
        let mut ep = self.ep;
        let mut steps = 0;
        loop {
            let flags = memory.word(ep)?;
            let entry = memory.word(ep.wrapping_sub(2 * WORD))?;
            let local = flags & layout::VM_ENV_FLAG_LOCAL != 0;
            if let Some(entry) = as_method_entry(memory, entry, local)? {
                return Ok(entry);
            }
            if local {
                return Ok(0);
            }
            if !M::SOUND {
                steps += 1;
                if steps > MOST_ENVIRONMENTS {
                    memory.reject()?;
                    return Ok(0);
                }
            }
            // The low two bits of the word are flags of the block handler.
            ep = memory.word(ep.wrapping_sub(WORD))? & !3;
        }
    }

    /// Whether C code runs in the frame: a C function or a block of one.
    #[inline(always)]
    pub fn is_native<M: Memory>(&self, memory: &M) -> Result<bool, M::Error> {
        Ok(memory.word(self.ep)? & layout::VM_FRAME_FLAG_CFRAME != 0)
    }

    /// Whether it is the frame of a C function itself.
    #[inline(always)]
    pub fn is_function<M: Memory>(&self, memory: &M) -> Result<bool, M::Error> {
        Ok(memory.word(self.ep)? & layout::VM_FRAME_MAGIC_MASK == layout::VM_FRAME_MAGIC_CFUNC)
    }

    /// What runs in the frame, whose method entry is `entry`.
    #[inline(always)]
    pub fn running<M: Memory>(&self, memory: &M, entry: usize) -> Result<Running, M::Error> {
        if self.is_native(memory)? {
            let is_function = self.is_function(memory)?;
            return Ok(if is_function && entry != 0 { Running::Native } else { Running::Hidden });
        }
        if self.pc == 0 || !is_heap(self.iseq as u64) {
            return Ok(Running::Hidden);
        }
        let (encoded, size) = iseq::code(memory, self.iseq)?;
        let offset = self.pc.wrapping_sub(encoded) / WORD;
        // The program counter is past the current instruction, except before the first one.
        let index = offset.saturating_sub(1);
        if index < size as usize {
            return Ok(Running::Ruby { index });
        }
        memory.reject()?;
        Ok(Running::Hidden)
    }
}

/// `check_method_entry` of vm_insnhelper.c, for the third word of an environment. In a local one, an svar can precede
/// the entry.
#[inline(always)]
fn as_method_entry<M: Memory>(memory: &M, word: usize, local: bool) -> Result<Option<usize>, M::Error> {
    match imemo_type(memory, word)? {
        Some(layout::IMEMO_MENT) => Ok(Some(word)),
        Some(layout::IMEMO_SVAR) if local => {
            let inner = memory.word(word.wrapping_add(layout::SVAR_CREF_OR_ME))?;
            Ok((imemo_type(memory, inner)? == Some(layout::IMEMO_MENT)).then_some(inner))
        }
        _ => Ok(None),
    }
}
