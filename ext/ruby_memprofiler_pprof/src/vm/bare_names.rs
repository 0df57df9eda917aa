//! The names of code, read without the GVL: they never change once there is code that runs.

use super::object::is_heap;
use rb_sys::VALUE;
use std::borrow::Cow;

/// The file names of the VM's own Ruby code begin with this.
const INTERNAL: &[u8] = ruby_layout::label::INTERNAL.as_bytes();

/// The method or block that `iseq` belongs to, without its class.
///
/// # Safety
/// `iseq` must be a live instruction sequence, and stay alive while the text is in use.
pub unsafe fn label<'a>(iseq: VALUE) -> Cow<'a, str> {
    // SAFETY: for an instruction sequence the function returns a word of it, which keeps the String alive.
    String::from_utf8_lossy(unsafe { bytes(rb_sys::rb_profile_frame_base_label(iseq)) })
}

/// The file of `iseq`.
///
/// # Safety
/// As for [`label`].
pub unsafe fn file<'a>(iseq: VALUE) -> Cow<'a, str> {
    // SAFETY: as required above.
    String::from_utf8_lossy(unsafe { file_bytes(iseq) })
}

/// The line on which `iseq` begins; 0 if unknown.
///
/// # Safety
/// As for [`label`].
pub unsafe fn start_line(iseq: VALUE) -> u32 {
    // SAFETY: the function returns a word of the instruction sequence.
    let line = unsafe { rb_sys::rb_profile_frame_first_lineno(iseq) };
    if line & 1 == 1 { u32::try_from(line >> 1).unwrap_or(0) } else { 0 }
}

/// Whether it is the VM's own code.
///
/// # Safety
/// As for [`label`].
pub unsafe fn is_internal(iseq: VALUE) -> bool {
    // SAFETY: as required above.
    unsafe { file_bytes(iseq) }.starts_with(INTERNAL)
}

/// # Safety
/// As for [`label`].
unsafe fn file_bytes<'a>(iseq: VALUE) -> &'a [u8] {
    // SAFETY: for an instruction sequence the functions return a word of it, or of an Array that it has and nobody
    // changes; both keep the String alive. Evaluated code has no absolute path.
    unsafe {
        let path = rb_sys::rb_profile_frame_absolute_path(iseq);
        bytes(if is_heap(path) { path } else { rb_sys::rb_profile_frame_path(iseq) })
    }
}

/// The contents of a String that nobody changes; nothing for nil.
///
/// # Safety
/// `string` must be nil or such a String, and stay alive.
unsafe fn bytes<'a>(string: VALUE) -> &'a [u8] {
    if !is_heap(string) {
        return &[];
    }
    // SAFETY: a live String, whose contents stay where they are; both functions only read its slot.
    unsafe {
        let length = usize::try_from(rb_sys::RSTRING_LEN(string)).unwrap_or(0);
        std::slice::from_raw_parts(rb_sys::RSTRING_PTR(string).cast(), length)
    }
}
