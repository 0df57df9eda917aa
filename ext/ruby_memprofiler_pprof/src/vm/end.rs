//! The end of the VM.

use super::protect;
use magnus::Error;
use rb_sys::ruby_vm_t;

/// Has `stop` called when the VM ends, in this process and its forked children, whatever Ruby code did before: by then
/// no Ruby code runs any more and all T_DATA is freed, but the heap is still there. `stop` must not use the VM.
pub fn call_at(stop: unsafe extern "C" fn(*mut ruby_vm_t)) -> Result<(), Error> {
    // SAFETY: with the GVL, as the extension is being loaded; the function exists as long as the process.
    protect(|| unsafe { rb_sys::ruby_vm_at_exit(Some(stop)) })
}
