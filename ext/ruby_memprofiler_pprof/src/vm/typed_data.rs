//! The kinds of Ruby objects that the extension makes by hand.

use rb_sys::{VALUE, rb_data_type_t, size_t};
use std::ffi::{CStr, c_void};
use std::mem::zeroed;

/// The function that marks what an object's data refers to.
pub type Mark = unsafe extern "C" fn(*mut c_void);
/// The function that frees an object's data.
pub type Free = unsafe extern "C" fn(*mut c_void);
/// The function that returns how many bytes an object's data takes.
pub type Size = unsafe extern "C" fn(*const c_void) -> size_t;

/// What the VM knows about the data of such objects. They have write barriers, and are freed at once.
pub struct TypedData(rb_data_type_t);

// SAFETY: written once, before it is shared.
unsafe impl Sync for TypedData {}
// SAFETY: its pointers lead to functions and a string literal.
unsafe impl Send for TypedData {}

impl TypedData {
    /// One with these functions.
    pub fn new(name: &'static CStr, mark: Option<Mark>, free: Free, size: Size) -> Self {
        // SAFETY: a C struct in which zero means that there is nothing; newer Rubies have more fields.
        let mut data_type: rb_data_type_t = unsafe { zeroed() };
        data_type.wrap_struct_name = name.as_ptr();
        data_type.function.dmark = mark;
        data_type.function.dfree = Some(free);
        data_type.function.dsize = Some(size);
        data_type.flags = rb_sys::rbimpl_typeddata_flags::RUBY_TYPED_FREE_IMMEDIATELY as VALUE
            | rb_sys::rbimpl_typeddata_flags::RUBY_TYPED_WB_PROTECTED as VALUE;
        Self(data_type)
    }

    /// For the VM.
    pub fn as_ptr(&self) -> *const rb_data_type_t {
        &raw const self.0
    }
}
