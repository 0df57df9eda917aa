//! Names as the VM keeps them, read without calling methods.

use super::super::object::{Type, is_heap, type_of};
use super::super::{layout, lossy};
use magnus::rb_sys::FromRawValue;
use magnus::{RString, Value};
use rb_sys::{ID, VALUE};
use ruby_layout::label::is_constant_path;

unsafe extern "C" {
    /// symbol.c; exported by every Ruby from 3.1 to 4.0. Looks into a table. False for an ID without a name.
    fn rb_id2str(id: ID) -> VALUE;
}

/// The contents of a String; None if `value` is something else.
///
/// # Safety
/// The GVL must be held, and `value` be alive if it is a heap reference.
pub unsafe fn string(value: VALUE) -> Option<String> {
    // SAFETY: as required of the caller.
    if !is_heap(value) || unsafe { type_of(value) } != Type::STRING {
        return None;
    }
    // SAFETY: a live String.
    RString::from_value(unsafe { Value::from_raw(value) }).map(lossy::string)
}

/// The name of an ID; None for one of the VM's own that has none.
///
/// # Safety
/// The GVL must be held.
pub unsafe fn id(id: ID) -> Option<String> {
    // SAFETY: the function checks whether there is such an ID; names of IDs live forever.
    unsafe { string(rb_id2str(id)) }
}

/// The name of the ID with this serial number, as the key of an ID table. The function ignores what else is in an ID.
///
/// # Safety
/// The GVL must be held.
pub unsafe fn id_of_serial(serial: u32) -> Option<String> {
    // SAFETY: as required of the caller.
    unsafe { id(ID::from(serial) << layout::ID_SCOPE_SHIFT) }
}

/// The name of a Symbol; None if `value` is something else.
///
/// # Safety
/// The GVL must be held, and `value` be alive if it is a heap reference.
pub unsafe fn symbol(value: VALUE) -> Option<String> {
    // SAFETY: a Symbol, alive or an immediate value, when the function is called, which reads it.
    unsafe { if rb_sys::RB_SYMBOL_P(value) { string(rb_sys::rb_sym2str(value)) } else { None } }
}

/// The path by which a class or module is found as a constant, such as `Net::HTTP`; None for an anonymous one.
///
/// # Safety
/// The GVL must be held, and `class` be a live class or module.
pub unsafe fn class_path(class: VALUE) -> Option<String> {
    // SAFETY: a live class or module, whose name the function reads.
    unsafe { string(rb_sys::rb_mod_name(class)) }.filter(|name| is_constant_path(name))
}

/// Where code is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// Such as `block in fetch`.
    pub label: String,
    /// The absolute file name, or what replaces it in evaluated code.
    pub file: String,
    /// The line on which it begins.
    pub line: i64,
}

impl SourceLine {
    /// Of an instruction sequence.
    ///
    /// # Safety
    /// The GVL must be held, and `iseq` be a live instruction sequence.
    pub unsafe fn of(iseq: VALUE) -> Option<Self> {
        // SAFETY: `iseq` is alive, and the functions read its location.
        unsafe {
            let file = string(rb_sys::rb_profile_frame_absolute_path(iseq))
                .or_else(|| string(rb_sys::rb_profile_frame_path(iseq)))?;
            let line = rb_sys::rb_profile_frame_first_lineno(iseq);
            let line = if line & 1 == 1 { line as i64 >> 1 } else { 0 };
            Some(Self { label: string(rb_sys::rb_profile_frame_label(iseq)).unwrap_or_default(), file, line })
        }
    }

    /// Whether it is a part of Ruby that is written in Ruby, such as `Array#each` with YJIT.
    pub fn is_internal(&self) -> bool {
        self.file.starts_with("<internal:")
    }

    /// `FILE:LINE`, where the files of gems begin with the gem's name, and others below `directory` without that.
    pub fn short(&self, directory: &str) -> String {
        format!("{}:{}", shorten(&self.file, directory), self.line)
    }
}

fn shorten<'a>(file: &'a str, directory: &str) -> &'a str {
    const GEMS: &str = "/gems/";
    let in_gem = file.rfind(GEMS).map(|at| &file[at + GEMS.len()..]);
    match in_gem.filter(|rest| rest.split_once('/').is_some_and(|(gem, _)| gem.contains('-'))) {
        Some(rest) => rest,
        None => file.strip_prefix(directory).unwrap_or(file),
    }
}

/// At most `length` characters of `text`.
pub fn bounded(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
