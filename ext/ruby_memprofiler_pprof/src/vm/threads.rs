//! Ruby's threads: which one runs, their names, and where the VM keeps what.

use super::frames::LAYOUT;
use super::layout::{EC_VM_STACK_SIZE, RTYPEDDATA_DATA};
use super::object::read;
use super::{layout, lossy, protect, quirks};
use magnus::rb_sys::AsRawValue;
use magnus::value::{Opaque, ReprValue};
use magnus::{Error, RString, Ruby, Value};
use rb_sys::VALUE;
use std::ptr::null;
use std::sync::OnceLock;

/// The running Thread. The VM pins it as long as it lives.
pub fn current() -> VALUE {
    // SAFETY: on a Ruby thread; also in a hook, since it only reads a thread-local variable.
    unsafe { rb_sys::rb_thread_current() }
}

/// The running Fiber. Makes the object of a thread's first fiber if there is none yet.
pub fn current_fiber() -> Result<VALUE, Error> {
    // SAFETY: the GVL is held and no borrow is alive across the call.
    protect(|| unsafe { rb_sys::rb_fiber_current() })
}

/// The name of a Thread; an unnamed main thread is called main. May run Ruby code.
pub fn name(thread: Value) -> Result<Option<String>, Error> {
    let name = RString::from_value(own_name(thread)?);
    // SAFETY: the GVL is held.
    let main = unsafe { rb_sys::rb_thread_main() };
    Ok(name.map(lossy::converted).or_else(|| (thread.as_raw() == main).then(|| "main".to_owned())))
}

/// What the VM keeps as the name of a Thread: a String or nil. May run Ruby code.
pub fn own_name(thread: Value) -> Result<Value, Error> {
    name_method(&Ruby::get_with(thread))?.funcall("bind_call", (thread,))
}

/// Where in the VM's `rb_thread_t` that is; None if this Ruby's layout is unknown.
pub fn name_offset(ruby: &Ruby) -> Result<Option<usize>, Error> {
    let (major, minor, patch) = quirks::version(ruby)?;
    let release = layout::for_release(major, minor, patch).filter(|_| LAYOUT.is_some());
    Ok(release.map(|release| release.thread_name))
}

/// Thread's own method, whatever subclasses define. Cached, since looking it up allocates.
fn name_method(ruby: &Ruby) -> Result<Value, Error> {
    static METHOD: OnceLock<Opaque<Value>> = OnceLock::new();
    if let Some(&method) = METHOD.get() {
        return Ok(ruby.get_inner(method));
    }
    let method: Value = ruby.class_thread().funcall("instance_method", ("name",))?;
    protect(|| ruby.gc_register_mark_object(method))?;
    // Another thread may have been first.
    Ok(ruby.get_inner(*METHOD.get_or_init(|| method.into())))
}

/// The execution context of the running thread or fiber; null if this Ruby's layout is unknown.
pub fn current_context() -> *const u8 {
    // SAFETY: the running Thread is alive.
    unsafe { context_of(current()) }
}

/// The execution context of a thread's current fiber; null if the thread has ended, or this Ruby's layout is unknown.
///
/// # Safety
/// The GVL must be held, and `thread` be a living Thread object.
pub unsafe fn context_of(thread: VALUE) -> *const u8 {
    // SAFETY: as required above; a living Thread's data exists.
    unsafe { context_in(data_of(thread)) }
}

/// How many bytes the stack of a thread's frames and their values has; 0 if it has ended, or that is not known.
///
/// # Safety
/// As for [`context_of`].
pub unsafe fn vm_stack_size(thread: VALUE) -> usize {
    // SAFETY: as required above; an execution context has this word.
    unsafe {
        let context = context_of(thread);
        if context.is_null() { 0 } else { read(context, EC_VM_STACK_SIZE).saturating_mul(size_of::<VALUE>()) }
    }
}

/// The VM's `rb_thread_t` of a Thread, which does not move.
///
/// # Safety
/// As for [`context_of`].
pub unsafe fn data_of(thread: VALUE) -> *const u8 {
    // SAFETY: a Thread is T_DATA, which has this word.
    unsafe { read(thread as *const u8, RTYPEDDATA_DATA) as *const u8 }
}

/// As [`context_of`], by the VM's `rb_thread_t`.
///
/// # Safety
/// `data` must be that of a living Thread, which either runs here or stands still.
pub unsafe fn context_in(data: *const u8) -> *const u8 {
    // SAFETY: an `rb_thread_t` has this word at the layout's offset.
    LAYOUT.map_or(null(), |layout| unsafe { read(data, layout.thread_ec) as *const u8 })
}

/// Whether native threads run several of the main Ractor's Ruby threads each. The VM has decided that when it began, by
/// the environment (thread_pthread.c `ruby_mn_threads_params`, with `atoi`), so this must be called first while the
/// extension is loaded.
pub fn share_natives() -> bool {
    static SHARE: OnceLock<bool> = OnceLock::new();
    let is_positive = |text: String| {
        let mut digits = text.trim_start().trim_start_matches('+').bytes().take_while(u8::is_ascii_digit);
        digits.any(|digit| digit != b'0')
    };
    *SHARE.get_or_init(|| cfg!(ruby_gte_3_3) && std::env::var("RUBY_MN_THREADS").is_ok_and(is_positive))
}
