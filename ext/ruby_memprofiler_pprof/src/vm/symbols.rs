//! Functions that the VM exports but declares in no public header, and that not every Ruby has.

use crate::faults;
use std::ffi::{CStr, c_void};

/// The VM's function with that name, if there is one.
pub(super) fn lookup(symbol: &CStr) -> Option<*mut c_void> {
    if symbol.to_str().is_ok_and(faults::denied) {
        return None;
    }
    // SAFETY: this only searches.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr()) };
    (!found.is_null()).then_some(found)
}
