//! What objects and roots refer to, as the garbage collector sees it.
//!
//! The VM runs its mark functions with a callback in place of the marking. They allocate nothing. Those of classes free
//! the entries of a class's call cache that refer to methods redefined since, and from Ruby 3.3 on those of a WeakMap
//! its entries for dead objects; so they may call `free`.

use super::super::object::is_heap;
use super::callback::Callback;
use rb_sys::VALUE;
use std::ffi::{CStr, c_char, c_void};

unsafe extern "C" {
    // gc.c; exported by every Ruby from 3.1 to 4.0 but in no public header. Both call rb_bug during a collection.
    fn rb_objspace_reachable_objects_from(
        object: VALUE,
        each: unsafe extern "C" fn(VALUE, *mut c_void),
        data: *mut c_void,
    );
    fn rb_objspace_reachable_objects_from_root(
        each: unsafe extern "C" fn(*const c_char, VALUE, *mut c_void),
        data: *mut c_void,
    );
}

/// Calls `each` for each reference of `object` to the heap, as often as there are references. Panics if `each` does.
///
/// # Safety
/// The GVL must be held, no collection be under way in this very thread, and `object` be alive.
#[inline]
pub unsafe fn each_child<F: FnMut(VALUE)>(object: VALUE, each: F) {
    unsafe extern "C" fn call<F: FnMut(VALUE)>(child: VALUE, callback: *mut c_void) {
        if is_heap(child) {
            // SAFETY: the pointer passed below; the VM calls this function only before the call below returns.
            unsafe { &mut *callback.cast::<Callback<F>>() }.run(|each| each(child));
        }
    }
    let mut callback = Callback::new(each);
    // SAFETY: the object is alive, so the functions that mark its references may run. `call` gets what it expects.
    unsafe { rb_objspace_reachable_objects_from(object, call::<F>, (&raw mut callback).cast()) };
    callback.finish();
}

/// Calls `each` for each root, with its category. Panics if `each` does.
///
/// # Safety
/// The GVL must be held, and no collection be under way in this very thread.
pub unsafe fn each_root<F: FnMut(&'static str, VALUE)>(each: F) {
    unsafe extern "C" fn call<F: FnMut(&'static str, VALUE)>(category: *const c_char, root: VALUE, data: *mut c_void) {
        if !is_heap(root) || category.is_null() {
            return;
        }
        // SAFETY: the VM's categories are literals in its code.
        let category: &'static CStr = unsafe { CStr::from_ptr(category) };
        // SAFETY: the pointer passed below; the VM calls this function only before the call below returns.
        let callback = unsafe { &mut *data.cast::<Callback<F>>() };
        callback.run(|each| each(category.to_str().unwrap_or("?"), root));
    }
    let mut callback = Callback::new(each);
    // SAFETY: the GVL is held, and nothing is collected meanwhile. `call` gets what it expects.
    unsafe { rb_objspace_reachable_objects_from_root(call::<F>, (&raw mut callback).cast()) };
    callback.finish();
}
