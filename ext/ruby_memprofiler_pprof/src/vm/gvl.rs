//! Giving up the GVL, and taking interrupts.

use super::protect;
use magnus::Error;
use memprofiler_core::interrupt::Interrupt;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null_mut;
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
