//! The types of T_DATA that are read.

use super::super::layout::RTYPEDDATA_DATA;
use super::super::object::{Type, read, type_of};
use rb_sys::VALUE;
use std::ffi::{CStr, c_char};

unsafe extern "C" {
    /// gc.c; exported by every Ruby from 3.1 to 4.0 but in no public header. Null for untyped T_DATA.
    fn rb_objspace_data_type_name(object: VALUE) -> *const c_char;
}

/// The name of a type, compared by its address: an extension may give its own types the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataType(usize);

impl DataType {
    /// The type of `object`; None if it is no T_DATA or an untyped one.
    ///
    /// # Safety
    /// The GVL must be held, and `object` be alive.
    #[inline]
    pub unsafe fn of(object: VALUE) -> Option<Self> {
        // SAFETY: the object is alive, and a T_DATA when the function is called, which reads its type.
        let name = unsafe {
            if type_of(object) != Type::DATA {
                return None;
            }
            rb_objspace_data_type_name(object)
        };
        (!name.is_null()).then_some(Self(name as usize))
    }

    /// Where the name is: a number that no other type has.
    pub fn address(self) -> u64 {
        self.0 as u64
    }

    /// Its name.
    pub fn name(self) -> &'static CStr {
        // SAFETY: not null, and a name that lives as long as its type, which nobody frees.
        unsafe { CStr::from_ptr(self.0 as *const c_char) }
    }
}

/// The VM's own types.
#[derive(Debug, Clone, Copy, Default)]
pub struct DataTypes {
    /// Of Thread.
    pub thread: Option<DataType>,
    /// Of Fiber.
    pub fiber: Option<DataType>,
    /// Of Proc.
    pub block: Option<DataType>,
    /// Of Binding.
    pub binding: Option<DataType>,
    /// Of Method and UnboundMethod.
    pub method: Option<DataType>,
    /// Of Set; None up to Ruby 3.4, where a Set is a plain object with a Hash.
    pub set: Option<DataType>,
}

/// What a T_DATA wraps.
///
/// # Safety
/// `object` must be alive and of a type that is never embedded: a Thread, Fiber, Proc or Binding.
pub unsafe fn data(object: VALUE) -> *const u8 {
    // SAFETY: a typed T_DATA has its data at the layout's offset.
    unsafe { read(object as *const u8, RTYPEDDATA_DATA) as *const u8 }
}
