//! The names of objects' classes. Like `names`, this may allocate on Ruby's heap and raise.

use super::names::text;
use super::object::{Type, class, flags, is_heap, type_of};
use super::protect;
use magnus::Error;
use rb_sys::VALUE;
use std::sync::Arc;

/// The name of a class; for an anonymous one that of its nearest named ancestor.
///
/// # Safety
/// The GVL must be held; `class` must be a live class or module.
pub unsafe fn class_name(class: VALUE) -> Result<Arc<str>, Error> {
    let mut named = class;
    let mut anonymous = false;
    while is_heap(named) {
        // SAFETY: `named` is a class or module.
        if let Some(name) = text(|| unsafe { rb_sys::rb_mod_name(named) })? {
            return Ok(if anonymous { format!("(anonymous {name})").into() } else { name.into() });
        }
        anonymous = true;
        // SAFETY: the class or module is alive: it is the one passed, or an ancestor that it keeps alive.
        if unsafe { type_of(named) } != Type::CLASS {
            break;
        }
        // SAFETY: `named` was just found to be a class; the function does not take modules.
        named = protect(|| unsafe { rb_sys::rb_class_superclass(named) })?;
    }
    Ok("(anonymous)".into())
}

/// The class of `object` as Ruby code sees it, or None for objects invisible to Ruby code.
///
/// # Safety
/// The GVL must be held; `object` must be alive.
pub unsafe fn class_of(object: VALUE) -> Option<VALUE> {
    // SAFETY: the GVL is held; `object` is alive, and so is its class.
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
/// The GVL must be held; `class` must be 0 or alive.
pub unsafe fn visible_class(class: VALUE) -> Option<VALUE> {
    if !is_heap(class) {
        return None;
    }
    // SAFETY: rb_class_real follows superclass pointers and returns 0 at their end.
    let real = unsafe { rb_sys::rb_class_real(class) };
    is_heap(real).then_some(real)
}
