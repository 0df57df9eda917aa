//! Reads instruction sequences and other internal objects of the VM.

use super::frames::LAYOUT;
use super::object::read;
use super::{jit, layout};
use magnus::Ruby;
use rb_sys::VALUE;
use ruby_layout::iseq;
use ruby_layout::memory::OwnMemory;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Whether YJIT is on. Up to Ruby 3.2, which is where it matters, it is so from the process's beginning or not at all.
static YJIT_IS_ON: AtomicBool = AtomicBool::new(false);

/// Asks the VM whether YJIT is on. From Ruby 3.3 on nobody needs to know.
pub fn init(ruby: &Ruby) {
    if !cfg!(ruby_gte_3_3) {
        YJIT_IS_ON.store(jit::is_on(ruby), Ordering::Relaxed);
    }
}

/// Whether YJIT has compiled any of `iseq`, up to Ruby 3.2; false from then on.
///
/// # Safety
/// `iseq` must be a live instruction sequence.
pub unsafe fn is_compiled(iseq: VALUE) -> bool {
    // SAFETY: a live instruction sequence has a body. That has this word at the layout's offset, or ends there where
    // YJIT was not built in, and then it is not on.
    YJIT_IS_ON.load(Ordering::Relaxed)
        && LAYOUT.is_some_and(|layout| unsafe {
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
    // SAFETY: a live instruction sequence, in a Ruby with a known layout, has a body, with its type.
    let memory = unsafe { OwnMemory::new() };
    let Ok(is_handler) = iseq::is_handler(&memory, iseq as usize);
    is_handler
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
