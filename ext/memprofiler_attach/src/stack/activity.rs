//! What a thread does.

use super::pause::Paused;
use crate::process::Tasks;
use memprofiler_core::linux;
use ruby_layout::thread::Thread;
use std::io;

/// What Linux says about a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linux {
    /// It runs, or would if a CPU were free.
    Runs,
    /// It waits in the kernel.
    Waits,
    /// It is not known: it was stopped, or no native thread runs it.
    Unknown,
}

/// What the thread that is `own` for process `pid` does.
pub fn of_linux(pid: i32, own: u32, tasks: &Tasks, paused: Option<&Paused>) -> Linux {
    if own == 0 {
        // It can only run once a native thread takes it.
        return Linux::Waits;
    }
    let Some(tid) = tasks.id(own) else { return Linux::Unknown };
    if let Some(paused) = paused {
        return paused.state_of(tid);
    }
    match stat(pid, tid).ok().as_deref().and_then(state_letter) {
        Some('R') => Linux::Runs,
        Some('S' | 'D' | 'I') => Linux::Waits,
        _ => Linux::Unknown,
    }
}

/// What `/proc` says of thread `tid`.
pub fn stat(pid: i32, tid: i32) -> io::Result<String> {
    linux::read(format!("/proc/{pid}/task/{tid}/stat"))
}

/// The third field, behind the name in parentheses, which may have any character.
pub fn state_letter(stat: &str) -> Option<char> {
    stat.rsplit_once(") ")?.1.chars().next()
}

/// In words.
pub fn of(thread: &Thread, linux: Linux) -> &'static str {
    match (thread.has_gvl, linux) {
        (true, Linux::Waits) => "has the GVL, waits in the kernel",
        (true, _) => "has the GVL, runs",
        (false, _) if thread.wants_gvl => "waits for the GVL",
        (false, Linux::Runs) => "runs without the GVL",
        (false, Linux::Waits) => "waits",
        (false, Linux::Unknown) => "without the GVL",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_parentheses() {
        assert_eq!(state_letter("12 (a) S b) R 1 2"), Some('R'));
        assert_eq!(state_letter("12"), None);
    }
}
