//! The machine stack: how much of it is left, and the remains of returned calls.

use super::frames::LAYOUT;
use super::hooks::TraceArg;
use super::object::read;
use std::hint::black_box;
use std::ptr::from_ref;

/// With so many bytes left the VM does not start a call: `STACKFRAME_FOR_CALL_CFUNC` (gc.c), 2,048 words.
const MARGIN: usize = 16 << 10;

/// In bytes: more than the frames of a flush take up to the garbage collection. The VM leaves 16 KB to code that it
/// calls.
const DEPTH: usize = 8 << 10;

/// Whether so little of it is left that the VM would not start a call: 16 KB. Past its end the VM's signal handler
/// raises a SystemStackError, which skips every frame in between, including those that would end a borrow. Safe in
/// hooks.
pub fn runs_out() -> bool {
    // SAFETY: on a Ruby thread; compares the stack pointer with the bounds of the running thread's or fiber's stack.
    unsafe { rb_sys::ruby_stack_check() != 0 }
}

/// The same in a hook with this argument, which is on the stack that it is about. To call the VM would take longer than
/// what else a hook does.
///
/// # Safety
/// The VM must have passed `arg` to the running hook.
#[inline]
pub unsafe fn runs_out_in_hook(arg: &TraceArg) -> bool {
    let Some(layout) = LAYOUT else { return runs_out() };
    // SAFETY: the execution context in which the hook runs, which has these words there in this Ruby.
    let [start, size] = unsafe { [layout.ec_stack_start, layout.ec_stack_size].map(|word| read(arg.context, word)) };
    // As in gc.c `stack_check`: a stack whose size is not known, and 0, does not end.
    start.wrapping_sub(from_ref(arg) as usize) > size.wrapping_sub(MARGIN)
}

/// Overwrites the remains of returned calls below the caller's frame. The GC treats everything on the stack as
/// references, including what the frames between here and its own leave uninitialised: a dead object would survive, and
/// count as retained.
#[inline(never)]
pub fn overwrite_remains() {
    black_box(&mut [0_u8; DEPTH]);
}
