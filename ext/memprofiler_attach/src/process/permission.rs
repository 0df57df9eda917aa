//! Why the kernel does not let one process look into another, and what helps.

use super::{State, Status};
use crate::failure::Failure;
use std::{fs, io};

/// Whether the kernel refused for want of permission.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES))
}

/// The failure of what needs the permission to trace process `pid`.
pub fn explain(pid: i32, error: &io::Error) -> Failure {
    let gone = error.raw_os_error() == Some(libc::ESRCH);
    let status = Status::of(pid).ok().filter(|status| !gone && status.state() != State::Ended);
    let Some(status) = status else { return Failure::new(format!("process {pid} has ended")) };
    if !is_refusal(error) {
        return Failure::new(format!("the memory of process {pid} cannot be read: {error}"));
    }
    let own = Status::of(std::process::id() as i32);
    let capabilities = own.as_ref().map_or("", |status| status.field("CapEff"));
    let user = own_user();
    let scope = yama_scope();
    Failure::new(format!(
        "not allowed to look into process {pid}: it runs as user {}, this tool as user {} with the capabilities {} \
         (CapEff; kernel.yama.ptrace_scope is {}): {}",
        effective_user(&status),
        user,
        capabilities,
        scope,
        remedy(&user, &scope),
    ))
}

/// What helps this tool's user to look into any process.
pub fn own_remedy() -> &'static str {
    remedy(&own_user(), &yama_scope())
}

/// `kernel.yama.ptrace_scope`: 3 forbids it to everybody, until the next boot.
fn yama_scope() -> String {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    scope.map_or_else(|_| "none".to_owned(), |scope| scope.trim().to_owned())
}

fn remedy(user: &str, scope: &str) -> &'static str {
    match (user, scope) {
        (_, "3") => "reboot with another value of kernel.yama.ptrace_scope: against 3 nothing else helps",
        ("0", _) => "add the capability CAP_SYS_PTRACE to the container, or run it on the host",
        _ => "use sudo, add the capability CAP_SYS_PTRACE to the container, or run it on the host",
    }
}

fn own_user() -> String {
    Status::of(std::process::id() as i32).map_or_else(|_| "?".to_owned(), |status| effective_user(&status))
}

fn effective_user(status: &Status) -> String {
    status.field("Uid").split_ascii_whitespace().nth(1).unwrap_or("?").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::thread::yield_now;

    #[test]
    fn says_who_may_not_and_what_helps() {
        let refused = io::Error::from_raw_os_error(libc::EPERM);
        let message = explain(std::process::id() as i32, &refused).to_string();
        for part in ["as user", "CapEff", "ptrace_scope", "CAP_SYS_PTRACE"] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn advises_all_but_root_to_use_sudo() {
        assert_eq!(["0", "1000", "?"].map(|user| remedy(user, "1").contains("sudo")), [false, true, true]);
    }

    #[test]
    fn advises_a_reboot_where_yama_forbids_everything() {
        for user in ["0", "1000"] {
            assert!(remedy(user, "3").contains("reboot") && !remedy(user, "3").contains("CAP_SYS_PTRACE"));
        }
    }

    #[test]
    fn notices_that_the_process_has_ended() {
        let gone = io::Error::from_raw_os_error(libc::ESRCH);
        assert_eq!(explain(i32::MAX, &gone), Failure::new("process 2147483647 has ended"));
        // One that its parent has not waited for cannot be traced.
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        while Status::of(pid).unwrap().state() != State::Ended {
            yield_now();
        }
        let refused = io::Error::from_raw_os_error(libc::EPERM);
        assert_eq!(explain(pid, &refused), Failure::new(format!("process {pid} has ended")));
        child.wait().unwrap();
    }
}
