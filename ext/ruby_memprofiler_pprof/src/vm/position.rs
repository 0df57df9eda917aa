//! Where in its code a frame is, and on which line.
//!
//! A frame's program counter points past the current instruction, so the word before it gives the line. Up to Ruby 3.2
//! `gc_event_hook_body` advances the counter of the innermost frame by one more word. That is right only for
//! instructions that do not advance it themselves before they run ("leaf" ones, such as putstring). After all others
//! the counter points to the next instruction, which may be on another line. Which of the two it was is decided when
//! the line is looked up: by whether the instruction there allocates objects of the type that was allocated. If so, it
//! counts as that one, although the one before may allocate such objects, too.

use super::object::Type;
use rb_sys::VALUE;

unsafe extern "C" {
    /// iseq.c; exported by every Ruby from 3.1 to 4.0. Does not allocate.
    fn rb_iseq_line_no(iseq: VALUE, position: usize) -> u32;
}

/// The index of an instruction word; for the innermost frame up to Ruby 3.2 also the type of the allocated object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position(u32);

const INDEX_BITS: u32 = 26;
const COMPILED: u32 = 1 << INDEX_BITS;
const TYPE_SHIFT: u32 = INDEX_BITS + 1;

impl Position {
    /// Whether the VM advances the program counter of the innermost frame once more.
    pub const ADVANCED: bool = cfg!(not(ruby_gte_3_3));

    /// The inverse of [`raw`](Self::raw).
    pub fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// As the stack tree stores it.
    pub fn raw(self) -> u32 {
        self.0
    }

    /// The word at `index`, or None if the index is too large.
    pub fn new(index: usize) -> Option<Self> {
        (index < 1 << INDEX_BITS).then_some(Self(index as u32))
    }

    /// The same position in an innermost frame that has allocated an object of type `kind`. `compiled` says whether any
    /// of its code is compiled.
    pub fn innermost(self, kind: Type, compiled: bool) -> Self {
        if !Self::ADVANCED {
            return self;
        }
        Self(self.0 | u32::from(kind.0) << TYPE_SHIFT | if compiled { COMPILED } else { 0 })
    }

    /// The line in `iseq`; 0 if unknown. Only reads, so up to Ruby 3.2 the innermost frame's may be that of the
    /// instruction before.
    ///
    /// # Safety
    /// `iseq` must be alive, and the position within its code.
    pub unsafe fn line_at_once(self, iseq: VALUE) -> u32 {
        let advanced = usize::from(self.0 >> TYPE_SHIFT != 0);
        // SAFETY: `iseq` is alive and the index within its code; the function searches a table that belongs to it, and
        // that does not change any more.
        unsafe { rb_iseq_line_no(iseq, self.index().saturating_sub(advanced)) }
    }

    fn index(self) -> usize {
        (self.0 & ((1 << INDEX_BITS) - 1)) as usize
    }

    /// The line in `iseq`; 0 if unknown. May allocate memory, and so collect garbage or raise, up to Ruby 3.2.
    ///
    /// # Safety
    /// The GVL must be held; `iseq` must be alive, and the position within its code.
    pub unsafe fn line(self, iseq: VALUE) -> u32 {
        let (kind, compiled) = (Type((self.0 >> TYPE_SHIFT) as u8), self.0 & COMPILED != 0);
        let mut index = self.index();
        // SAFETY: `iseq` is alive and the index within its code. Only innermost frames have a type here; the VM has
        // advanced their program counter by a word past the beginning of an instruction.
        if kind != Type::NONE && index > 0 && !unsafe { advanced::is_under_way(iseq, index, kind, compiled) } {
            index -= 1;
        }
        // SAFETY: `iseq` is alive and the index still within its code; the function searches a table that belongs to
        // it.
        unsafe { rb_iseq_line_no(iseq, index) }
    }
}

#[cfg(not(ruby_gte_3_3))]
mod advanced {
    use super::Type;
    use rb_sys::VALUE;
    use std::ffi::{CStr, c_char};

    unsafe extern "C" {
        /// iseq.c: the instructions as plain numbers; allocated once per instruction sequence.
        fn rb_iseq_original_iseq(iseq: VALUE) -> *const VALUE;
        // Tables for debuggers, indexed by instruction number.
        static rb_vm_insn_len_info: [u8; 0];
        static rb_vm_insn_name_offset: [u16; 0];
        static rb_vm_insn_name_base: [c_char; 0];
    }

    /// Whether it was the instruction that begins at `index` that allocated an object of type `kind`, rather than the
    /// one before. If both could have, and there is compiled code, it was compiled code, which advances the counter
    /// itself.
    ///
    /// # Safety
    /// The GVL must be held; `iseq` must be alive; `index` must be within its code, at the beginning of an instruction.
    pub unsafe fn is_under_way(iseq: VALUE, index: usize, kind: Type, compiled: bool) -> bool {
        // SAFETY: `iseq` is alive; an instruction begins at `index`, and so one begins at the place found for the one
        // before.
        unsafe { allocates(iseq, index, kind) && !(compiled && allocates(iseq, instruction_before(iseq, index), kind)) }
    }

    /// Where the instruction that ends at `index` begins.
    ///
    /// # Safety
    /// As for [`is_under_way`].
    unsafe fn instruction_before(iseq: VALUE, index: usize) -> usize {
        let (mut before, mut at) = (0, 0);
        while at < index {
            before = at;
            // SAFETY: `at` is below `index`, which is within the code, and an instruction begins there; the table has
            // the length of each instruction.
            at += unsafe {
                let number = *rb_iseq_original_iseq(iseq).add(at) as usize;
                usize::from(*rb_vm_insn_len_info.as_ptr().add(number)).max(1)
            };
        }
        before
    }

    /// Whether a leaf instruction begins at `index` that may allocate an object of type `kind`.
    ///
    /// # Safety
    /// As for [`is_under_way`].
    unsafe fn allocates(iseq: VALUE, index: usize, kind: Type) -> bool {
        // SAFETY: the VM returns as many numbers as the code has words, and has a name for each instruction.
        let name = unsafe {
            let number = *rb_iseq_original_iseq(iseq).add(index) as usize;
            let offset = *rb_vm_insn_name_offset.as_ptr().add(number);
            CStr::from_ptr(rb_vm_insn_name_base.as_ptr().add(usize::from(offset)))
        };
        match name.to_bytes() {
            b"putstring" | b"anytostring" | b"getspecial" | b"defined" => kind == Type::STRING,
            b"newarray" | b"newarraykwsplat" | b"duparray" | b"expandarray" => kind == Type::ARRAY,
            b"duphash" => kind == Type::HASH,
            b"opt_plus" | b"opt_minus" | b"opt_mult" => {
                matches!(kind, Type::STRING | Type::ARRAY | Type::FLOAT | Type::BIGNUM)
            }
            b"intern" => kind == Type::SYMBOL || kind == Type::STRING,
            b"getblockparam" => kind == Type::DATA,
            _ => false,
        }
    }
}

#[cfg(ruby_gte_3_3)]
mod advanced {
    use super::Type;
    use rb_sys::VALUE;

    /// The program counter is not advanced on this Ruby.
    ///
    /// # Safety
    /// None needed.
    pub unsafe fn is_under_way(_iseq: VALUE, _index: usize, _kind: Type, _compiled: bool) -> bool {
        true
    }
}
