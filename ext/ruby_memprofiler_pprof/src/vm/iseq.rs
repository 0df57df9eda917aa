//! Reads instruction sequences and other internal objects of the VM.

use super::frames::LAYOUT;
use super::layout;
use super::object::read;
use rb_sys::VALUE;
use ruby_layout::iseq;
use ruby_layout::memory::OwnMemory;

/// The kind of an internal object, a T_IMEMO; None for any other object.
///
/// # Safety
/// `object` must be alive if it is a heap reference.
pub unsafe fn imemo_type(object: VALUE) -> Option<usize> {
    // SAFETY: a heap reference is to an object that is alive, and has flags.
    let memory = unsafe { OwnMemory::new() };
    let Ok(kind) = iseq::imemo_type(&memory, object as usize);
    kind
}

/// Whether a JIT compiler has compiled any of `iseq`.
///
/// # Safety
/// `iseq` must be a live instruction sequence.
pub unsafe fn is_compiled(iseq: VALUE) -> bool {
    // SAFETY: a live instruction sequence has a body, which has this word at the layout's offset.
    LAYOUT.is_some_and(|layout| unsafe {
        read(read(iseq as *const u8, layout::ISEQ_BODY) as *const u8, layout.iseq_body_compiled) != 0
    })
}

/// Whether `iseq` is the body of a file or class, which is never that of a method.
///
/// # Safety
/// `iseq` must be 0 or a live instruction sequence.
pub unsafe fn is_body(iseq: VALUE) -> bool {
    if iseq == 0 {
        return false;
    }
    // SAFETY: it is not 0, so it is a live instruction sequence.
    let kind = unsafe { kind(iseq) };
    matches!(kind, layout::ISEQ_TYPE_TOP | layout::ISEQ_TYPE_CLASS | layout::ISEQ_TYPE_MAIN)
}

/// Whether `iseq` is the body of a rescue or ensure clause.
///
/// # Safety
/// The GVL must be held; `iseq` must be a live instruction sequence.
pub unsafe fn is_handler(iseq: VALUE) -> bool {
    if LAYOUT.is_none() {
        return false;
    }
    // SAFETY: a live instruction sequence, in a Ruby with a known layout.
    let kind = unsafe { kind(iseq) };
    matches!(kind, layout::ISEQ_TYPE_RESCUE | layout::ISEQ_TYPE_ENSURE)
}

/// The `enum rb_iseq_type` of `iseq`.
///
/// # Safety
/// `iseq` must be a live instruction sequence.
unsafe fn kind(iseq: VALUE) -> usize {
    // SAFETY: a live instruction sequence has a body, with its type.
    let memory = unsafe { OwnMemory::new() };
    let Ok(kind) = iseq::kind(&memory, iseq as usize);
    kind
}
