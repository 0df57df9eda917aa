//! The frames of the running thread, from the VM's own `rb_profile_frames`.

use super::iseq::imemo_type;
use super::layout::IMEMO_ISEQ;
use rb_sys::VALUE;

/// Fills the buffers with frames and their lines, innermost first. Returns how many there are.
///
/// # Safety
/// Must be called on a Ruby thread, in a hook or with the GVL held.
pub unsafe fn read(frames: &mut [VALUE], lines: &mut [i32]) -> usize {
    let room = frames.len().min(lines.len());
    // SAFETY: the function gets the length of both buffers.
    let count = unsafe { rb_sys::rb_profile_frames(0, room as i32, frames.as_mut_ptr(), lines.as_mut_ptr()) };
    usize::try_from(count).unwrap_or(0)
}

/// Whether a frame runs code of the program. Ruby 3.1 includes the dummy frame at the bottom of the stack, which does
/// not: it is the outermost one, and has no line.
///
/// # Safety
/// `frame` must come from [`read`], and still be on the stack.
pub unsafe fn is_shown(frame: VALUE, line: i32, outermost: bool) -> bool {
    // SAFETY: every frame is an instruction sequence or method entry, which the frame on the stack keeps alive.
    match unsafe { imemo_type(frame) } {
        None => false,
        Some(kind) => kind != IMEMO_ISEQ || !outermost || line != 0,
    }
}
