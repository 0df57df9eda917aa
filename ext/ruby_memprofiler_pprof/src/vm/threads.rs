//! The GVL and the threads around it.

use super::frames::LAYOUT;
use super::layout::{EC_VM_STACK_SIZE, RTYPEDDATA_DATA};
use super::object::read;
use super::{layout, lossy, protect, quirks};
use magnus::rb_sys::AsRawValue;
use magnus::value::{Opaque, ReprValue};
use magnus::{Error, RString, Ruby, Value};
use memprofiler_core::interrupt::Interrupt;
use rb_sys::{Qtrue, VALUE};
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Runs `work` without the GVL, or with it if the VM declines because an interrupt is pending. The interrupt is left
/// for later: this function does not raise. It panics if `work` does.
pub fn without_gvl<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    try_without_gvl(work, Unblock::Nothing).unwrap_or_else(|work| work())
}

/// Runs `wait` without the GVL, which waits in a system call. An interrupt of the thread ends that call with EINTR,
/// upon which `wait` has to return. None, without a call of `wait`, if an interrupt is pending already. Does not raise;
/// panics if `wait` does.
#[cfg(target_os = "linux")]
pub fn waiting<T: Send>(wait: impl FnOnce() -> T + Send) -> Option<T> {
    try_without_gvl(wait, Unblock::Signal).ok()
}

/// Runs `wait` without the GVL. An interrupt of the thread calls `wake`, possibly on another thread and before `wait`
/// has begun, upon which `wait` has to return. None, without a call of `wait`, if an interrupt is pending already. Does
/// not raise; panics if `wait` does.
pub fn wait_for<T: Send>(wait: impl FnOnce() -> T + Send, wake: &(dyn Fn() + Sync)) -> Option<T> {
    try_without_gvl(wait, Unblock::Call(&wake)).ok()
}

/// Lets other threads have the GVL for a moment, unless an interrupt is pending. Does not raise. (Up to Ruby 3.2 a
/// thread that releases the GVL and takes it at once is faster than the one that waits for it.)
pub fn make_way(time: Duration) {
    let _ = try_without_gvl(|| std::thread::sleep(time), Unblock::Nothing);
}

/// Runs `work` without the GVL, and handles interrupts of the thread: a signal, Timeout, `Thread#kill`. Fails with the
/// exception if one is raised; otherwise `work`, which has given up, starts again.
pub fn interruptible<T: Send, E: Send>(
    mut work: impl FnMut(&Interrupt) -> Result<T, E> + Send,
) -> Result<Result<T, E>, Error> {
    let mut patience = Duration::ZERO;
    loop {
        let (start, interrupt) = (Instant::now(), Interrupt::after(patience));
        match try_without_gvl(|| work(&interrupt), Unblock::Strike(&interrupt)) {
            Ok(result) if result.is_ok() || !interrupt.was_noticed() => return Ok(result),
            // Longer each time, so that work finishes even under repeated signals that raise nothing.
            Ok(_) => patience = 2 * start.elapsed(),
            Err(_) => {}
        }
        check_interrupts()?;
    }
}

/// `RB_NOGVL_INTR_FAIL` and `RB_NOGVL_UBF_ASYNC_SAFE` of ruby/thread.h.
const INTR_FAIL: c_int = 1;
const UBF_ASYNC_SAFE: c_int = 2;

/// A function that ends a wait.
type UnblockFunction = unsafe extern "C" fn(*mut c_void);

/// What an interrupt of the thread does to work without the GVL.
#[derive(Clone, Copy)]
enum Unblock<'a> {
    /// It waits for the work to end.
    Nothing,
    /// It asks the work to give up.
    Strike(&'a Interrupt),
    /// It calls this.
    Call(&'a &'a (dyn Fn() + Sync)),
    /// The VM sends a signal to the thread, again and again until the work has ended.
    #[cfg(target_os = "linux")]
    Signal,
}

/// Runs `work` without the GVL. Returns `work` if the VM declines because an interrupt is pending. Does not raise;
/// panics if `work` does.
fn try_without_gvl<T: Send, F: FnOnce() -> T + Send>(work: F, unblock: Unblock<'_>) -> Result<T, F> {
    struct Call<F, T> {
        work: Option<F>,
        result: Option<std::thread::Result<T>>,
    }
    extern "C" fn run<F: FnOnce() -> T, T>(call: *mut c_void) -> *mut c_void {
        // SAFETY: the pointer passed below; the caller waits until this function has returned.
        let call = unsafe { &mut *call.cast::<Call<F, T>>() };
        // A panic must not unwind through the VM.
        call.result = call.work.take().map(|work| catch_unwind(AssertUnwindSafe(work)));
        null_mut()
    }
    unsafe extern "C" fn strike(interrupt: *mut c_void) {
        // SAFETY: the pointer passed below. The VM may call this on any thread, with a lock held, but only before the
        // call below returns; or without, in the handler of a signal, which Linux has the main thread handle: the one
        // that is in the call below.
        unsafe { &*interrupt.cast::<Interrupt>() }.strike();
    }
    unsafe extern "C" fn wake(function: *mut c_void) {
        // SAFETY: as above, the pointer passed below.
        (unsafe { *function.cast::<&(dyn Fn() + Sync)>() })();
    }
    fn start<F: FnOnce() -> T, T>(call: &mut Call<F, T>, unblock: Unblock<'_>) {
        let call = std::ptr::from_mut(call).cast();
        let (function, data): (Option<UnblockFunction>, _) = match unblock {
            Unblock::Nothing => (None, null_mut()),
            Unblock::Strike(interrupt) => (Some(strike), std::ptr::from_ref(interrupt).cast_mut().cast()),
            Unblock::Call(function) => (Some(wake), std::ptr::from_ref(function).cast_mut().cast()),
            // SAFETY: RUBY_UBF_IO, which the VM replaces by a function of its own. Like all values but 0, it is one
            // that a pointer to a function may have.
            #[cfg(target_os = "linux")]
            Unblock::Signal => (Some(unsafe { std::mem::transmute::<isize, UnblockFunction>(-1) }), null_mut()),
        };
        // For a function that is not safe in signal handlers, the VM may create a Thread that calls it. What that
        // allocates is sampled, which may be an interrupt, and then the VM declines.
        let safe_in_handlers = cfg!(target_os = "linux") && matches!(unblock, Unblock::Strike(_));
        let flags = INTR_FAIL | if safe_in_handlers { UBF_ASYNC_SAFE } else { 0 };
        // SAFETY: `run` does not touch Ruby. Without an unblocking function an interrupt waits for it to end, and with
        // INTR_FAIL the VM does not raise afterwards. `strike` stores to an atomic.
        unsafe {
            rb_sys::rb_nogvl(Some(run::<F, T>), call, function, data, flags);
        }
    }
    let mut call = Call { work: Some(work), result: None };
    start(&mut call, unblock);
    let Call { work, result } = call;
    match (result, work) {
        (Some(result), _) => Ok(result.unwrap_or_else(|panic| resume_unwind(panic))),
        (None, Some(work)) => Err(work),
        // `run` stores a result whenever it takes the work.
        (None, None) => std::process::abort(),
    }
}

/// Lets another thread run that waits for the GVL. Fails if an exception was raised in this thread.
pub fn schedule() -> Result<(), Error> {
    // SAFETY: the GVL is held and no borrow is alive across the call.
    protect(|| unsafe { rb_sys::rb_thread_schedule() })
}

/// Fails with the exception that is pending in this thread, if any.
pub fn check_interrupts() -> Result<(), Error> {
    // SAFETY: the GVL is held and no borrow is alive across the call.
    protect(|| unsafe { rb_sys::rb_thread_check_ints() })
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

/// A locked Thread::Mutex, unlocked when dropped.
#[derive(Debug)]
pub struct Locked(VALUE);

impl Locked {
    /// Waits for `mutex`. Fails with the exception that was raised in this thread meanwhile, or with Ruby's own if
    /// waiting is not allowed here.
    pub fn new(mutex: Value) -> Result<Self, Error> {
        let mutex = mutex.as_raw();
        // SAFETY: the GVL is held and no borrow is alive across the call.
        protect(|| unsafe { rb_sys::rb_mutex_lock(mutex) }).map(Self).inspect_err(|_| Self::pass_on(mutex))
    }

    /// Wakes the next thread that waits for `mutex`, if it is unlocked. Ruby (up to 4.0) wakes one when it unlocks; if
    /// that one is killed before it has locked, the others would sleep until somebody else comes.
    fn pass_on(mutex: VALUE) {
        // SAFETY: the GVL is held. It does not wait, nor raise.
        if unsafe { rb_sys::rb_mutex_trylock(mutex) } == Qtrue as VALUE {
            drop(Self(mutex));
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: the GVL is held. Unlike the method, the C function does not end by checking interrupts, which would
        // discard the result for which the lock was held. It fails only if the lock is not held.
        let _ = protect(|| unsafe { rb_sys::rb_mutex_unlock(self.0) });
    }
}

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
