//! The signal that the timers send: which it is, and its handler.

use super::slot;
use crate::vm::errno::SavedErrno;
use crate::vm::safepoint::{self, Job};
use std::ffi::{c_int, c_void};
use std::io;
use std::mem::zeroed;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

/// One past the greatest number of a signal.
const SIGNAL_BOUND: usize = 65;

/// What each signal did before it was taken over. A handler once installed stays: a late signal would otherwise end the
/// process.
static BEFORE: [OnceLock<Action>; SIGNAL_BOUND] = [const { OnceLock::new() }; SIGNAL_BOUND];

struct Action(libc::sigaction);

// SAFETY: numbers, and the address of a function.
unsafe impl Send for Action {}
// SAFETY: as above; never changes.
unsafe impl Sync for Action {}

/// A signal that nobody uses, from the upper end of the real-time signals; None if there is none.
pub fn free_signal() -> Option<c_int> {
    // The last one is valgrind's.
    (libc::SIGRTMIN()..libc::SIGRTMAX()).rev().find(|&signal| {
        let unused = |now: libc::sigaction| now.sa_sigaction == libc::SIG_DFL && !is_replaced(signal, &now);
        is_ours(signal) || action(signal).is_some_and(unused)
    })
}

/// Whether the handler of `signal` is this module's.
pub fn is_ours(signal: c_int) -> bool {
    action(signal).is_some_and(|action| action.sa_sigaction == handler())
}

/// Whether something else has taken `signal` over from this module's handler, and may pass signals on to it: if they
/// were passed back, that would never end.
fn is_replaced(signal: c_int, now: &libc::sigaction) -> bool {
    let before = BEFORE.get(signal as usize).and_then(OnceLock::get);
    now.sa_sigaction != handler() && before.is_some_and(|Action(before)| before.sa_sigaction != now.sa_sigaction)
}

fn handler() -> usize {
    on_signal as *const () as usize
}

fn action(signal: c_int) -> Option<libc::sigaction> {
    // SAFETY: a C struct of numbers, for which zeros are valid, and which the function fills.
    unsafe {
        let mut action = zeroed();
        (libc::sigaction(signal, null(), &raw mut action) == 0).then_some(action)
    }
}

/// Counts the ticks of timers that send `signal` from now on, and requests `job` at each. What `signal` did before it
/// still does if no timer sent it. An error says why the signal cannot be had.
pub fn listen(signal: c_int, job: Job) -> io::Result<()> {
    safepoint::prepare();
    let before =
        action(signal).filter(|_| (0..SIGNAL_BOUND as c_int).contains(&signal)).ok_or_else(io::Error::last_os_error)?;
    if is_replaced(signal, &before) {
        return Err(io::Error::other("its handler has been replaced: choose another signal"));
    }
    if before.sa_sigaction != handler() {
        BEFORE[signal as usize].get_or_init(|| Action(before));
        // SAFETY: a C struct of numbers, for which zeros are valid.
        let mut action: libc::sigaction = unsafe { zeroed() };
        action.sa_sigaction = handler();
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        // SAFETY: the function has the signature that SA_SIGINFO asks for, and only does what a handler may.
        if unsafe { libc::sigaction(signal, &raw const action, null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    slot::count_for(job);
    Ok(())
}

/// The handler. Everything in it is safe in a signal handler.
unsafe extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let _errno = SavedErrno::new();
    // SAFETY: with SA_SIGINFO the system passes valid information, in which timers set the value.
    let slot =
        unsafe { if (*info).si_code == libc::SI_TIMER { slot::slot_at((*info).si_value().sival_ptr) } else { None } };
    match slot {
        Some(slot) => slot.tick(),
        // SAFETY: passes on what the system has passed.
        None => unsafe { pass_on(signal, info, context) },
    }
}

/// # Safety
/// As for a signal handler.
unsafe fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(Action(before)) = BEFORE.get(signal as usize).and_then(OnceLock::get) else { return };
    let function = before.sa_sigaction;
    if function == libc::SIG_DFL || function == libc::SIG_IGN {
        return;
    }
    // SAFETY: that was the signal's handler, of the kind that its flags say.
    unsafe {
        if before.sa_flags & libc::SA_SIGINFO == 0 {
            std::mem::transmute::<usize, extern "C" fn(c_int)>(function)(signal);
        } else {
            let function: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = std::mem::transmute(function);
            function(signal, info, context);
        }
    }
}
