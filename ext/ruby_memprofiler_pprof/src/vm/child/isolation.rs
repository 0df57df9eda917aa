//! What a copy gives up and takes on before anything else, so that the program does not notice it. Only system calls:
//! nothing here allocates or waits for a lock.

use super::inside::{Ending, end};
use crate::faults;
use libc::{c_int, c_uint};
use std::mem::zeroed;
use std::os::fd::RawFd;
use std::ptr::null_mut;
use std::str::from_utf8;
use std::time::Duration;

/// The descriptor of the pipe in the copy.
pub const PIPE: RawFd = 3;

/// Isolates this process, a copy of `parent`. Only `pipe` stays open, as [`PIPE`].
///
/// # Safety
/// This process must be a copy with a single thread, in which all signals are blocked and nobody uses a descriptor.
pub unsafe fn isolate(parent: libc::pid_t, pipe: RawFd, wall: Duration) {
    // SAFETY: no pointers but to variables and constants, which outlive the calls; nobody uses the descriptors.
    unsafe {
        reset_signals();
        libc::dup2(pipe, PIPE);
        close_from(PIPE + 1);
        to_null();
        // The parent is a thread, the one that waits for the answer. It may have ended before this call.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            end(Ending::Orphaned);
        }
        libc::prctl(libc::PR_SET_NAME, c"memprofiler-why".as_ptr());
        be_killed_first();
        libc::nice(10);
        limit_time(wall);
        let nothing = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const nothing);
        // That limit does not apply to dumps that a program collects. From here on /proc/self belongs to root.
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
    }
}

/// No handler of the program runs. Nearly all signals stay blocked, too: what the program is sent with its process
/// group does not concern the copy. A crash ends it even so; `abort` unblocks its signal by itself.
unsafe fn reset_signals() {
    for signal in 1..=64 {
        // SAFETY: the default action is always valid; that of some signals cannot be set, nor does it matter.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Lets the kernel end the copy if nobody else does.
unsafe fn limit_time(wall: Duration) {
    let seconds = c_uint::try_from(wall.as_secs()).unwrap_or(c_uint::MAX - 1) + 1;
    let limit = libc::rlimit { rlim_cur: seconds.into(), rlim_max: seconds.into() };
    // SAFETY: the set and the limit are valid for the calls that fill and read them.
    unsafe {
        let mut fatal = zeroed();
        libc::sigemptyset(&raw mut fatal);
        for signal in [libc::SIGALRM, libc::SIGXCPU] {
            libc::sigaddset(&raw mut fatal, signal);
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const fatal, null_mut());
        libc::alarm(seconds);
        // If the program has less, that stays.
        libc::setrlimit(libc::RLIMIT_CPU, &raw const limit);
    }
}

/// Where memory runs out the kernel is to kill the copy, not the program.
unsafe fn be_killed_first() {
    // SAFETY: constants, and a descriptor that is closed here.
    unsafe {
        let file = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY);
        if file >= 0 {
            libc::write(file, b"1000".as_ptr().cast(), 4);
            libc::close(file);
        }
    }
}

/// Lets 0 to 2 refer to /dev/null, or to nothing if there is none.
unsafe fn to_null() {
    // SAFETY: constants, and descriptors that nobody uses.
    unsafe {
        for standard in 0..=2 {
            libc::close(standard);
        }
        if libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) == 0 {
            libc::dup2(0, 1);
            libc::dup2(0, 2);
        }
    }
}

/// Closes all descriptors from `first` on: a copy that kept the program's sockets would keep their ports, and their
/// peers would not notice that the program has closed them.
unsafe fn close_from(first: c_int) {
    if faults::denied("close_range") || faults::denied("/proc") {
        // SAFETY: nobody uses the descriptors.
        return unsafe { close_listed(first) };
    }
    // SAFETY: as above. The C library may not have the function, and the kernel has it from 5.9 on.
    if unsafe { libc::syscall(libc::SYS_close_range, first, c_int::MAX, 0) } != 0 {
        // SAFETY: as above.
        unsafe { close_listed(first) };
    }
}

/// Closes the descriptors that are in /proc/self/fd.
unsafe fn close_listed(first: c_int) {
    let mut entries = Entries([0; 1024]);
    // SAFETY: nobody uses the descriptors from `first` on; the buffer has the given size.
    unsafe {
        // There may be no free descriptor left.
        libc::close(first);
        let path = if faults::denied("/proc") { c"" } else { c"/proc/self/fd" };
        let folder = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY);
        if folder < 0 {
            end(Ending::NotIsolated);
        }
        loop {
            let size = libc::syscall(libc::SYS_getdents64, folder, entries.0.as_mut_ptr(), entries.0.len());
            let Some(listed) = usize::try_from(size).ok().filter(|&size| size > 0) else { break };
            for descriptor in descriptors(&entries.0[..listed]) {
                if descriptor >= first && descriptor != folder {
                    libc::close(descriptor);
                }
            }
        }
        libc::close(folder);
    }
}

/// As the kernel wants it.
#[repr(align(8))]
struct Entries([u8; 1024]);

/// The names in a list of `struct linux_dirent64` that are numbers. After 16 bytes comes the entry's size, after 19 its
/// name, which ends with a zero.
fn descriptors(mut entries: &[u8]) -> impl Iterator<Item = c_int> {
    std::iter::from_fn(move || {
        let size = usize::from(u16::from_ne_bytes([*entries.get(16)?, *entries.get(17)?]));
        let name = entries.get(19..size)?;
        entries = &entries[size..];
        Some(name.split(|&byte| byte == 0).next().and_then(|digits| from_utf8(digits).ok()?.parse().ok()))
    })
    .flatten()
}
