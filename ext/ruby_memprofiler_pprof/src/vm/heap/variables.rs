//! Instance variables, and the entries of Hashes.

use super::super::object::{Type, is_heap, type_of};
use super::callback::Callback;
use super::references::each_child;
use super::walk::{HAS_FIELDS, is_fields};
use rb_sys::{ID, VALUE};
use std::ffi::{c_int, c_void};

unsafe extern "C" {
    /// variable.c; public. Where HAS_FIELDS, also takes what has the variables of another object.
    fn rb_ivar_foreach(object: VALUE, each: unsafe extern "C" fn(ID, VALUE, *mut c_void) -> c_int, data: *mut c_void);
    /// hash.c; exported by every Ruby from 3.1 to 4.0 but in no public header. Unlike rb_hash_foreach it does not count
    /// the iterations of the Hash, for which that may allocate.
    fn rb_hash_stlike_foreach(
        hash: VALUE,
        each: unsafe extern "C" fn(VALUE, VALUE, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

/// `ST_CONTINUE`
const CONTINUE: c_int = 0;

/// Calls `each` with the ID and value of each instance variable of `object`, class variables of a class and hidden
/// variables included, that refers to the heap.
///
/// # Safety
/// The GVL must be held, and `object` be alive.
pub unsafe fn each_variable<F: FnMut(ID, VALUE)>(object: VALUE, mut each: F) {
    // SAFETY: the object is alive, and so are the objects with its variables. The VM looks for those of a class where
    // the running code may write, and makes a copy in a box of Ruby 4.0: so they are looked for here.
    unsafe {
        if !HAS_FIELDS || type_of(object) == Type::OBJECT || is_fields(object) {
            return each_own_variable(object, each);
        }
        each_child(object, |child| {
            if is_fields(child) {
                each_own_variable(child, &mut each);
            }
        });
    }
}

/// # Safety
/// As for [`each_variable`].
unsafe fn each_own_variable<F: FnMut(ID, VALUE)>(object: VALUE, each: F) {
    unsafe extern "C" fn call<F: FnMut(ID, VALUE)>(id: ID, value: VALUE, callback: *mut c_void) -> c_int {
        if is_heap(value) {
            // SAFETY: the pointer passed below; the VM calls this function only before the call below returns.
            unsafe { &mut *callback.cast::<Callback<F>>() }.run(|each| each(id, value));
        }
        CONTINUE
    }
    let mut callback = Callback::new(each);
    // SAFETY: the object is alive, and nobody changes it meanwhile. `call` gets what it expects.
    unsafe { rb_ivar_foreach(object, call::<F>, (&raw mut callback).cast()) };
    callback.finish();
}

/// The value of one instance variable of `object`, or 0.
///
/// # Safety
/// As for [`each_variable`].
pub unsafe fn variable(object: VALUE, name: ID) -> VALUE {
    let mut found = 0;
    // SAFETY: as required of the caller.
    unsafe {
        each_variable(object, |id, value| {
            if id == name {
                found = value
            }
        });
    }
    found
}

/// Calls `each` with each key and value of `hash`.
///
/// # Safety
/// The GVL must be held, and `hash` be a live Hash.
pub unsafe fn each_pair<F: FnMut(VALUE, VALUE)>(hash: VALUE, each: F) {
    unsafe extern "C" fn call<F: FnMut(VALUE, VALUE)>(key: VALUE, value: VALUE, callback: *mut c_void) -> c_int {
        // SAFETY: the pointer passed below; the VM calls this function only before the call below returns.
        unsafe { &mut *callback.cast::<Callback<F>>() }.run(|each| each(key, value));
        CONTINUE
    }
    let mut callback = Callback::new(each);
    // SAFETY: the Hash is alive, and nobody changes it meanwhile. `call` gets what it expects.
    unsafe { rb_hash_stlike_foreach(hash, call::<F>, (&raw mut callback).cast()) };
    callback.finish();
}
