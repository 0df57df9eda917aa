//! What functions and classes are called. Everything here may allocate on Ruby's heap and raise: it runs only in a
//! flush, with no borrow of the collector's state.

use super::frames::{imemo_type, LAYOUT};
use super::layout;
use super::object::{Type, class, flags, is_heap, type_of};
use magnus::rb_sys::{FromRawValue, protect};
use magnus::{Error, RString, Value};
use rb_sys::VALUE;
use std::sync::Arc;

unsafe extern "C" {
    /// symbol.c; exported by every Ruby from 3.1 to 4.0. False for an id without a name.
    fn rb_id2str(id: rb_sys::ID) -> VALUE;
    /// iseq.c; exported by every Ruby from 3.1 to 4.0. Does not allocate.
    fn rb_iseq_line_no(iseq: VALUE, position: usize) -> u32;
}

/// What a profile says of a function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FunctionName {
    /// As the newest Ruby's backtraces say it, qualified.
    pub name: Arc<str>,
    /// The absolute file name, or what stands for it in evaluated code.
    pub file: Arc<str>,
    /// The line on which the function begins; 0 if unknown.
    pub start_line: u32,
    /// Such functions have no place of their own: backtraces show them at their caller's.
    pub native: bool,
}

/// Names the function that runs `iseq`, or the C function of `entry` if `iseq` is 0. `depth` is the number of
/// environments between the frame and its method; `pretty` asks for the class in front.
///
/// # Safety
/// GVL held; `iseq` and `entry` each 0, or alive and of their type.
pub unsafe fn function(iseq: VALUE, entry: VALUE, depth: u32, pretty: bool) -> Result<FunctionName, Error> {
    if iseq == 0 {
        // SAFETY: the caller's promise.
        return unsafe { native_function(entry, pretty) };
    }
    // SAFETY: rb_profile_frame_* take an instruction sequence or a method entry.
    unsafe {
        let label = text(|| rb_sys::rb_profile_frame_label(iseq))?.unwrap_or_default();
        let base = text(|| rb_sys::rb_profile_frame_base_label(iseq))?.unwrap_or_default();
        let path = match text(|| rb_sys::rb_profile_frame_absolute_path(iseq))? {
            Some(path) => path,
            None => text(|| rb_sys::rb_profile_frame_path(iseq))?.unwrap_or_default(),
        };
        let start_line = integer(|| rb_sys::rb_profile_frame_first_lineno(iseq))?;
        let place = Label::parse(&label, &base);
        let name = match defined_method(entry) {
            Some(id) => {
                let blocks = depth.saturating_sub(place.handlers);
                let method = text(|| rb_id2str(id))?.unwrap_or(base);
                format!("{}{}", block_prefix(blocks), qualified(entry, &method, pretty)?)
            }
            None if entry != 0 => format!("{}{}", place.prefix, qualified(entry, &base, pretty)?),
            None => format!("{}{base}", place.prefix),
        };
        let native = path.starts_with("<internal:");
        Ok(FunctionName { name: name.into(), file: path.into(), start_line, native })
    }
}

/// Names the function of a frame that `rb_profile_frames` returned; `pretty` as for [`function`].
///
/// # Safety
/// GVL held; `frame` as returned, and alive.
pub unsafe fn profiled_frame(frame: VALUE, pretty: bool) -> Result<FunctionName, Error> {
    // SAFETY: the caller's promise.
    unsafe {
        let Some(path) = text(|| rb_sys::rb_profile_frame_path(frame))? else {
            return native_function(frame, pretty);
        };
        let file = text(|| rb_sys::rb_profile_frame_absolute_path(frame))?.unwrap_or(path);
        let label = text(|| rb_sys::rb_profile_frame_label(frame))?.unwrap_or_default();
        let base = text(|| rb_sys::rb_profile_frame_base_label(frame))?.unwrap_or_default();
        let start_line = integer(|| rb_sys::rb_profile_frame_first_lineno(frame))?;
        let is_entry = imemo_type(frame) == Some(layout::IMEMO_MENT);
        let name = if is_entry { qualified(frame, &base, pretty)? } else { format!("{}{base}", Label::parse(&label, &base).prefix) };
        let native = file.starts_with("<internal:");
        Ok(FunctionName { name: name.into(), file: file.into(), start_line, native })
    }
}

/// The line of the instruction at `position` of `iseq`; 0 if unknown.
///
/// # Safety
/// GVL held; `iseq` alive and `position` within its code.
pub unsafe fn line(iseq: VALUE, position: u32) -> u32 {
    // SAFETY: the caller's promise; the function searches a table of the instruction sequence.
    unsafe { rb_iseq_line_no(iseq, position as usize) }
}

/// The name of a class, or for an anonymous one that of its nearest named ancestor.
///
/// # Safety
/// GVL held; `class` must be a live class or module.
pub unsafe fn class_name(class: VALUE) -> Result<Arc<str>, Error> {
    let mut named = class;
    let mut anonymous = false;
    while is_heap(named) {
        // SAFETY: `named` is a class or module.
        if let Some(name) = text(|| unsafe { rb_sys::rb_mod_name(named) })? {
            return Ok(if anonymous { format!("(anonymous {name})").into() } else { name.into() });
        }
        anonymous = true;
        // SAFETY: as above; rb_class_superclass takes classes only.
        if unsafe { type_of(named) } != Type::CLASS {
            break;
        }
        // SAFETY: `named` is a class.
        named = protect(|| unsafe { rb_sys::rb_class_superclass(named) })?;
    }
    Ok("(anonymous)".into())
}

/// The class of `object` as Ruby code sees it, or None for objects that Ruby code does not see.
///
/// # Safety
/// GVL held; `object` alive.
pub unsafe fn class_of(object: VALUE) -> Option<VALUE> {
    // SAFETY: the caller's promise.
    unsafe {
        if Type::of_flags(flags(object)).is_internal() {
            return None;
        }
        visible_class(class(object))
    }
}

/// The class behind the class word of an object, past singleton classes; None if the object is hidden.
///
/// # Safety
/// GVL held; `class` 0 or alive.
pub unsafe fn visible_class(class: VALUE) -> Option<VALUE> {
    if !is_heap(class) {
        return None;
    }
    // SAFETY: rb_class_real follows superclass pointers and returns 0 at their end.
    let real = unsafe { rb_sys::rb_class_real(class) };
    is_heap(real).then_some(real)
}

/// # Safety
/// GVL held; `entry` a live method entry of a C function.
unsafe fn native_function(entry: VALUE, pretty: bool) -> Result<FunctionName, Error> {
    // SAFETY: the caller's promise.
    let method = text(|| unsafe { rb_sys::rb_profile_frame_method_name(entry) })?.unwrap_or_default();
    // SAFETY: as above.
    let name = unsafe { qualified(entry, &method, pretty) }?;
    Ok(FunctionName { name: name.into(), file: "<cfunc>".into(), start_line: 0, native: true })
}

/// `Class#method` or `Class.method`; the bare method if the class has no name of its own, as in Ruby 3.4.
///
/// # Safety
/// GVL held; `entry` a live method entry.
unsafe fn qualified(entry: VALUE, method: &str, pretty: bool) -> Result<String, Error> {
    if !pretty {
        return Ok(method.to_owned());
    }
    // SAFETY: the caller's promise.
    let class = text(|| unsafe { rb_sys::rb_profile_frame_classpath(entry) })?;
    let Some(class) = class.filter(|class| !class.starts_with("#<")) else {
        return Ok(method.to_owned());
    };
    // SAFETY: as above.
    let singleton = unsafe { rb_sys::rb_profile_frame_singleton_method_p(entry) } == rb_sys::Qtrue as VALUE;
    Ok(format!("{class}{}{method}", if singleton { '.' } else { '#' }))
}

/// The name under which define_method defined `entry`; None for other methods.
///
/// # Safety
/// GVL held; `entry` 0 or a live method entry.
unsafe fn defined_method(entry: VALUE) -> Option<rb_sys::ID> {
    if entry == 0 {
        return None;
    }
    LAYOUT?;
    // SAFETY: by the layouts of rb_method_entry_struct and rb_method_definition_struct.
    unsafe {
        let definition = *((entry as usize + layout::ME_DEF) as *const usize);
        let kind = *(definition as *const usize) & layout::METHOD_TYPE_MASK;
        (kind == layout::METHOD_TYPE_BMETHOD).then(|| *((definition + layout::METHOD_DEF_ORIGINAL_ID) as *const rb_sys::ID))
    }
}

/// The part of a label before the name of the method or class body.
#[derive(Debug, PartialEq, Eq)]
struct Label {
    /// `block in ` and the like.
    prefix: String,
    /// How many of its parts are rescue and ensure bodies, which newer Rubies do not mention.
    handlers: u32,
}

impl Label {
    fn parse(label: &str, base: &str) -> Self {
        let mut prefix = label.strip_suffix(base).unwrap_or_default();
        let mut handlers = 0;
        while let Some(rest) = prefix.strip_prefix("rescue in ").or_else(|| prefix.strip_prefix("ensure in ")) {
            prefix = rest;
            handlers += 1;
        }
        Self { prefix: prefix.to_owned(), handlers }
    }
}

fn block_prefix(blocks: u32) -> String {
    match blocks {
        0 => String::new(),
        1 => "block in ".to_owned(),
        _ => format!("block ({blocks} levels) in "),
    }
}

/// The contents of the string that `function` returns; None for nil and false.
fn text(function: impl FnOnce() -> VALUE) -> Result<Option<String>, Error> {
    let value = protect(function)?;
    if !is_heap(value) {
        return Ok(None);
    }
    // SAFETY: a heap reference that the VM has just returned.
    let string = RString::from_value(unsafe { Value::from_raw(value) });
    // SAFETY: nothing runs between borrowing the bytes and copying them.
    Ok(string.map(|string| String::from_utf8_lossy(unsafe { string.as_slice() }).into_owned()))
}

/// The small integer that `function` returns; 0 for anything else.
fn integer(function: impl FnOnce() -> VALUE) -> Result<u32, Error> {
    let value = protect(function)?;
    Ok(if value & 1 == 1 { u32::try_from(value >> 1).unwrap_or(0) } else { 0 })
}
