//! Sets, which are T_DATA from Ruby 4.0 on.

use super::types::DataType;
use magnus::Error;
use rb_sys::VALUE;

#[cfg(ruby_gte_4_0)]
mod core {
    use super::{DataType, Error, VALUE};
    use crate::vm::protect;

    unsafe extern "C" {
        // set.c; ruby/internal/intern/set.h.
        fn rb_set_new() -> VALUE;
        fn rb_set_size(set: VALUE) -> usize;
    }

    /// The type of Sets; None if they are no T_DATA.
    pub fn data_type() -> Result<Option<DataType>, Error> {
        // SAFETY: the GVL is held, since this runs in a method. Nothing is allocated between the set's making and the
        // reading of its type, so it is not collected.
        Ok(unsafe { DataType::of(protect(|| rb_set_new())?) })
    }

    /// The number of its elements.
    ///
    /// # Safety
    /// The GVL must be held, and `set` be alive and of [`data_type`].
    pub unsafe fn size(set: VALUE) -> Option<u64> {
        // SAFETY: as required; it reads a number.
        Some(unsafe { rb_set_size(set) } as u64)
    }
}

#[cfg(not(ruby_gte_4_0))]
mod core {
    use super::{DataType, Error, VALUE};

    /// None: they are plain objects.
    pub fn data_type() -> Result<Option<DataType>, Error> {
        Ok(None)
    }

    /// Never called.
    pub unsafe fn size(_set: VALUE) -> Option<u64> {
        None
    }
}

pub use core::{data_type, size};
