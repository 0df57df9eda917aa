//! errno, which a hook must leave unchanged.

unsafe extern "C" {
    /// The address of this thread's errno.
    #[cfg_attr(any(target_os = "macos", target_os = "ios", target_os = "freebsd"), link_name = "__error")]
    fn __errno_location() -> *mut i32;
}

/// Restores errno when dropped.
#[derive(Debug)]
pub struct SavedErrno(i32);

impl SavedErrno {
    /// Saves errno.
    pub fn new() -> Self {
        // SAFETY: the pointer is to a variable of this thread, which lives as long as the thread.
        Self(unsafe { *__errno_location() })
    }
}

impl Drop for SavedErrno {
    fn drop(&mut self) {
        // SAFETY: the pointer is to a variable of this thread, which lives as long as the thread.
        unsafe { *__errno_location() = self.0 };
    }
}
