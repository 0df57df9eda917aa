//! A thread of another process, held by ptrace.

use super::arch::{Registers, Table};
use crate::process;
use ruby_layout::memory::Memory;
use std::io;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

const NT_PRSTATUS: libc::c_int = 1;
const PTRACE_EVENT_STOP: libc::c_int = 128;
const PTRACE_GET_RSEQ_CONFIGURATION: libc::c_int = 0x420f;
/// More than any processor's registers need.
const MOST_VECTORS: usize = 1 << 14;

/// Why a thread could not be held.
#[derive(Debug)]
pub enum Missed {
    /// The kernel refuses, or the thread is gone.
    Error(io::Error),
    /// The process has ended.
    Ended,
    /// A signal has stopped the whole process.
    Stopped,
    /// It is somewhere in the kernel.
    Late,
}

/// Until dropped, it stands still. Should this tool die, the kernel lets it go on.
#[derive(Debug)]
pub struct HeldThread {
    tid: libc::pid_t,
    table: Table,
    since: Instant,
}

impl HeldThread {
    /// Stops a thread, without a signal.
    pub fn hold(tid: i32, table: Table, limit: Duration) -> Result<Self, Missed> {
        let none = std::ptr::null_mut();
        trace(libc::PTRACE_SEIZE as _, tid, 0, none).map_err(Missed::Error)?;
        // From here on it is let go in any case.
        let mut thread = Self { tid, table, since: Instant::now() };
        trace(libc::PTRACE_INTERRUPT as _, tid, 0, none).map_err(Missed::Error)?;
        let deadline = Instant::now() + limit;
        loop {
            match thread.stopped(deadline)? {
                (libc::SIGTRAP, PTRACE_EVENT_STOP) => break,
                (_, PTRACE_EVENT_STOP) => return Err(Missed::Stopped),
                // A signal was first: it is delivered, and the stop is still to come.
                (signal, _) => {
                    trace(libc::PTRACE_CONT as _, tid, 0, signal as usize as *mut _).map_err(Missed::Error)?
                }
            }
        }
        thread.since = Instant::now();
        Ok(thread)
    }

    /// The signal and the event of its next stop.
    fn stopped(&self, deadline: Instant) -> Result<(libc::c_int, libc::c_int), Missed> {
        match process::next_stop(self.tid, deadline).map_err(Missed::Error)? {
            None => Err(Missed::Late),
            Some(status) if libc::WIFSTOPPED(status) => Ok((libc::WSTOPSIG(status), status >> 16)),
            Some(_) => Err(Missed::Ended),
        }
    }

    /// The general registers.
    pub fn registers(&self) -> io::Result<Registers> {
        let mut registers = MaybeUninit::<Registers>::zeroed();
        self.registers_of(
            libc::PTRACE_GETREGSET as _,
            NT_PRSTATUS,
            registers.as_mut_ptr().cast(),
            size_of::<Registers>(),
        )?;
        // SAFETY: numbers, for which zero is a value.
        Ok(unsafe { registers.assume_init() })
    }

    /// Sets them.
    pub fn set_registers(&self, mut registers: Registers) -> io::Result<()> {
        let own = (&raw mut registers).cast();
        self.registers_of(libc::PTRACE_SETREGSET as _, NT_PRSTATUS, own, size_of::<Registers>()).map(|_| ())
    }

    /// All other registers, in the form in which a thread restores them itself.
    pub fn vectors(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0_u8; MOST_VECTORS];
        let own = bytes.as_mut_ptr().cast();
        let size = self.registers_of(libc::PTRACE_GETREGSET as _, self.table.vector_set, own, MOST_VECTORS)?;
        bytes.truncate(size);
        Ok(bytes)
    }

    fn registers_of(
        &self,
        request: libc::c_int,
        set: libc::c_int,
        base: *mut libc::c_void,
        size: usize,
    ) -> io::Result<usize> {
        let mut own = libc::iovec { iov_base: base, iov_len: size };
        trace(request, self.tid, set as usize, (&raw mut own).cast())?;
        Ok(own.iov_len)
    }

    /// Whether it may be in a restartable sequence, which nobody may leave and enter again.
    pub fn in_restartable_sequence<M: Memory>(&self, memory: &M) -> bool {
        // struct ptrace_rseq_configuration: the address of a struct rseq first, in which the sequence comes second.
        let mut answer = [0_usize; 3];
        let known = trace(PTRACE_GET_RSEQ_CONFIGURATION, self.tid, size_of_val(&answer), answer.as_mut_ptr().cast());
        known.is_ok() && answer[0] != 0 && memory.word(answer[0] + 8).is_ok_and(|sequence| sequence != 0)
    }

    /// Lets it go on; how long it was held.
    pub fn release(self) -> Duration {
        let since = self.since;
        drop(self);
        since.elapsed()
    }
}

impl Drop for HeldThread {
    fn drop(&mut self) {
        // Fails if the process has ended meanwhile.
        let _ = trace(libc::PTRACE_DETACH as _, self.tid, 0, std::ptr::null_mut());
    }
}

/// `ptrace`, in the form that is the same in all C libraries.
fn trace(request: libc::c_int, tid: libc::pid_t, address: usize, data: *mut libc::c_void) -> io::Result<()> {
    // SAFETY: the requests of this file write to `data` only, as much as the caller says there is room for.
    let result = unsafe { libc::ptrace(request as _, tid, address as *mut libc::c_void, data) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inject::arch::TABLE;
    use crate::process::{State, Status};
    use std::process::Command;

    #[test]
    fn holds_a_thread_until_it_is_dropped() {
        let Some(table) = TABLE else { return };
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let state = || Status::of(pid).unwrap().state();
        let held = HeldThread::hold(pid, table, Duration::from_secs(60)).unwrap();
        assert_eq!(state(), State::Traced);
        assert_ne!((table.stack_pointer)(&held.registers().unwrap()), 0);
        assert!(held.vectors().unwrap().len() >= 576);
        held.release();
        assert_eq!(state(), State::Alive);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn holds_no_process_that_has_ended() {
        let Some(table) = TABLE else { return };
        let missed = HeldThread::hold(i32::MAX, table, Duration::from_secs(60)).map(|_| ());
        assert!(matches!(missed, Err(Missed::Error(error)) if error.raw_os_error() == Some(libc::ESRCH)));
    }
}
