//! What returned calls leave on the machine stack.

use std::hint::black_box;
use std::mem::MaybeUninit;

/// In bytes: more than the frames of a flush take up to the garbage collection. The VM leaves 16 KB to whom it calls.
const DEPTH: usize = 8 << 10;

/// Overwrites what returned calls have left below the caller's frame. The GC takes whatever lies on the stack for
/// references, also in what the frames between here and itself leave uninitialised: an object that is dead would
/// survive, and be called retained.
#[inline(never)]
pub fn overwrite_remains() {
    let mut remains = MaybeUninit::<[u8; DEPTH]>::uninit();
    black_box(remains.write([0; DEPTH]));
}
