//! The remains of returned calls on the machine stack.

use std::hint::black_box;

/// In bytes: more than the frames of a flush take up to the garbage collection. The VM leaves 16 KB to code that it
/// calls.
const DEPTH: usize = 8 << 10;

/// Overwrites the remains of returned calls below the caller's frame. The GC treats everything on the stack as
/// references, including what the frames between here and its own leave uninitialised: a dead object would survive, and
/// count as retained.
#[inline(never)]
pub fn overwrite_remains() {
    black_box(&mut [0_u8; DEPTH]);
}
