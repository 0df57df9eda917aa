//! The names of functions. Everything here may allocate on Ruby's heap and raise: it runs only in a flush, while the
//! collector's state is not borrowed.

use super::frames::LAYOUT;
use super::iseq::{self, imemo_type};
use super::object::{is_heap, read};
use super::{layout, lossy, protect};
use magnus::rb_sys::FromRawValue;
use magnus::{Error, RString, Value};
use rb_sys::VALUE;
use ruby_layout::label::{INTERNAL, block_prefix, blocks, is_constant_path};
use ruby_layout::memory::OwnMemory;
use ruby_layout::method::BlockMethod;
use std::sync::Arc;

pub use ruby_layout::function::ShownAt;

unsafe extern "C" {
    /// symbol.c; exported by every Ruby from 3.1 to 4.0. False for an id without a name.
    fn rb_id2str(id: rb_sys::ID) -> VALUE;
}

/// What a profile says about a function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FunctionName {
    /// As in the newest Ruby's backtraces, qualified.
    pub name: Arc<str>,
    /// The absolute file name, or what replaces it in evaluated code.
    pub file: Arc<str>,
    /// The line on which the function begins; 0 if unknown.
    pub start_line: u32,
}

impl FunctionName {
    /// The name of a pseudo-frame of the profiler's own.
    pub fn pseudo(name: &str) -> Self {
        Self { name: name.into(), file: "".into(), start_line: 0 }
    }
}

/// Names the function that runs `iseq`, or the C function of `entry` if `iseq` is 0. With `pretty`, prefixes it with
/// the class.
///
/// # Safety
/// The GVL must be held; `iseq` and `entry` must each be 0, or alive and of their type.
pub unsafe fn function(iseq: VALUE, entry: VALUE, pretty: bool) -> Result<(FunctionName, ShownAt), Error> {
    if iseq == 0 {
        // SAFETY: without an instruction sequence it is a C function, identified by its method entry, which is alive
        // here.
        return unsafe { native_function(entry, pretty) };
    }
    // SAFETY: rb_profile_frame_* take an instruction sequence or a method entry, which are alive here.
    unsafe {
        let label = text(|| rb_sys::rb_profile_frame_label(iseq))?.unwrap_or_default();
        let base = text(|| rb_sys::rb_profile_frame_base_label(iseq))?.unwrap_or_default();
        let path = match text(|| rb_sys::rb_profile_frame_absolute_path(iseq))? {
            Some(path) => path,
            None => text(|| rb_sys::rb_profile_frame_path(iseq))?.unwrap_or_default(),
        };
        let start_line = integer(|| rb_sys::rb_profile_frame_first_lineno(iseq))?;
        let blocks = blocks(&label, &base);
        let name = match defined_method(entry) {
            Some((id, body)) => {
                let method = text(|| rb_id2str(id))?.unwrap_or(base);
                format!("{}{}", block_prefix(blocks.saturating_sub(body?)), qualified(entry, &method, pretty)?)
            }
            None if entry != 0 => format!("{}{}", block_prefix(blocks), qualified(entry, &base, pretty)?),
            None => format!("{}{base}", block_prefix(blocks)),
        };
        let place = if path.starts_with(INTERNAL) {
            ShownAt::Caller
        } else if iseq::is_handler(iseq) {
            ShownAt::InPlaceOfCaller
        } else {
            ShownAt::Own
        };
        Ok((FunctionName { name: name.into(), file: path.into(), start_line }, place))
    }
}

/// Names the function of a frame that `rb_profile_frames` returned; `pretty` as for [`function`].
///
/// # Safety
/// The GVL must be held; `frame` must be as returned, and alive.
pub unsafe fn profiled_frame(frame: VALUE, pretty: bool) -> Result<(FunctionName, ShownAt), Error> {
    // SAFETY: `frame` is alive, and an instruction sequence or method entry, which rb_profile_frame_* take. One without
    // a path is the method entry of a C function.
    unsafe {
        let Some(path) = text(|| rb_sys::rb_profile_frame_path(frame))? else {
            return native_function(frame, pretty);
        };
        let file = text(|| rb_sys::rb_profile_frame_absolute_path(frame))?.unwrap_or(path);
        let label = text(|| rb_sys::rb_profile_frame_label(frame))?.unwrap_or_default();
        let base = text(|| rb_sys::rb_profile_frame_base_label(frame))?.unwrap_or_default();
        let start_line = integer(|| rb_sys::rb_profile_frame_first_lineno(frame))?;
        let is_entry = imemo_type(frame) == Some(layout::IMEMO_MENT);
        let name = if is_entry {
            qualified(frame, &base, pretty)?
        } else {
            format!("{}{base}", block_prefix(blocks(&label, &base)))
        };
        let place = if file.starts_with(INTERNAL) { ShownAt::Caller } else { ShownAt::Own };
        Ok((FunctionName { name: name.into(), file: file.into(), start_line }, place))
    }
}

/// # Safety
/// The GVL must be held; `entry` must be a live method entry of a C function.
unsafe fn native_function(entry: VALUE, pretty: bool) -> Result<(FunctionName, ShownAt), Error> {
    // SAFETY: `entry` is a live method entry, which the function takes.
    let method = text(|| unsafe { rb_sys::rb_profile_frame_method_name(entry) })?.unwrap_or_default();
    // SAFETY: the caller keeps the method entry alive, also while the VM ran code above.
    let name = unsafe { qualified(entry, &method, pretty) }?;
    Ok((FunctionName { name: name.into(), file: "<cfunc>".into(), start_line: 0 }, ShownAt::Caller))
}

/// `Class#method` or `Class.method`; the bare method if the class has no name of its own, as in Ruby 3.4.
///
/// # Safety
/// The GVL must be held; `entry` must be a live method entry.
unsafe fn qualified(entry: VALUE, method: &str, pretty: bool) -> Result<String, Error> {
    if !pretty {
        return Ok(method.to_owned());
    }
    // SAFETY: `entry` is alive, and has its owner, a class or module, at the offset of rb_method_entry_struct's layout.
    let (class, separator) = unsafe {
        if rb_sys::rb_profile_frame_singleton_method_p(entry) == rb_sys::Qtrue as VALUE {
            (text(|| rb_sys::rb_profile_frame_classpath(entry))?, '.')
        } else if LAYOUT.is_some() {
            let owner = read(entry as *const u8, layout::ME_OWNER) as VALUE;
            (text(|| rb_sys::rb_mod_name(owner))?, '#')
        } else {
            (text(|| rb_sys::rb_profile_frame_classpath(entry))?, '#')
        }
    };
    Ok(match class.filter(|class| is_constant_path(class)) {
        Some(class) => format!("{class}{separator}{method}"),
        None => method.to_owned(),
    })
}

/// The name under which define_method defined `entry`, and how many blocks its body is nested in; None for other
/// methods.
///
/// # Safety
/// The GVL must be held; `entry` must be 0 or a live method entry.
unsafe fn defined_method(entry: VALUE) -> Option<(rb_sys::ID, Result<u32, Error>)> {
    if entry == 0 {
        return None;
    }
    LAYOUT?;
    // SAFETY: `entry` is alive, and keeps its definition, that one's Proc and its code alive.
    let memory = unsafe { OwnMemory::new() };
    let Ok(method) = BlockMethod::of(&memory, entry as usize);
    let BlockMethod { id, iseq } = method?;
    // SAFETY: the code is alive, as above.
    Some((id as rb_sys::ID, iseq.map_or(Ok(0), |iseq| unsafe { depth(iseq as VALUE) })))
}

/// The nesting depth in blocks of `iseq`. Calls no Ruby method: when one returns the VM runs signal handlers, whose
/// allocations would go unnoticed.
///
/// # Safety
/// The GVL must be held; `iseq` must be a live instruction sequence.
unsafe fn depth(iseq: VALUE) -> Result<u32, Error> {
    // SAFETY: `iseq` is alive.
    unsafe {
        let label = text(|| rb_sys::rb_profile_frame_label(iseq))?.unwrap_or_default();
        let base = text(|| rb_sys::rb_profile_frame_base_label(iseq))?.unwrap_or_default();
        Ok(blocks(&label, &base))
    }
}

/// The contents of the string that `function` returns; None for nil and false.
pub fn text(function: impl FnOnce() -> VALUE) -> Result<Option<String>, Error> {
    let value = protect(function)?;
    if !is_heap(value) {
        return Ok(None);
    }
    // SAFETY: a heap reference that the VM just returned.
    Ok(RString::from_value(unsafe { Value::from_raw(value) }).map(lossy::string))
}

/// The small integer that `function` returns; 0 for anything else.
fn integer(function: impl FnOnce() -> VALUE) -> Result<u32, Error> {
    let value = protect(function)?;
    Ok(if value & 1 == 1 { u32::try_from(value >> 1).unwrap_or(0) } else { 0 })
}
