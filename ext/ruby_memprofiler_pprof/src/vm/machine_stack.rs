//! What returned calls leave on the machine stack.

use std::hint::black_box;

/// In bytes: more than the frames of a flush take up to the garbage collection. The VM leaves 16 KB to whom it calls.
const DEPTH: usize = 8 << 10;

/// Overwrites what returned calls have left below the caller's frame. The GC takes whatever lies on the stack for
/// references, also in what the frames between here and itself leave uninitialised: an object that is dead would
/// survive, and be called retained.
#[inline(never)]
pub fn overwrite_remains() {
    black_box(&mut [0_u8; DEPTH]);
}
