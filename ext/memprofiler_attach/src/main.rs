//! The tool that works on a running Ruby by its PID, for the program `memprofiler`, which knows the users' options:
//!
//!     memprofiler-attach ps
//!     memprofiler-attach stack PID [pause] [json]
//!     memprofiler-attach check PID
//!     memprofiler-attach require PID FILE SECONDS
//!     memprofiler-attach core FILE [json]
//!     memprofiler-attach watch PID SECONDS RATE [pause]
//!
//! Prints to stdout. An error goes to stderr, with the exit status 2; or 3 if the process may still require the file.

#[cfg(target_os = "linux")]
mod elf;
#[cfg(target_os = "linux")]
mod failure;
#[cfg(target_os = "linux")]
mod inject;
#[cfg(target_os = "linux")]
mod interrupt;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod ps;
#[cfg(target_os = "linux")]
mod ruby;
#[cfg(target_os = "linux")]
mod stack;
#[cfg(target_os = "linux")]
mod text;
#[cfg(target_os = "linux")]
mod vm;

#[cfg(target_os = "linux")]
use std::time::Duration;

/// As of `memprofiler`, when a command could not do its work.
#[cfg(target_os = "linux")]
const TROUBLE: u8 = 2;
/// The process was asked to require a file, and may still do so.
#[cfg(target_os = "linux")]
const PENDING: u8 = 3;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    match arguments().and_then(|arguments| run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            std::process::ExitCode::from(if failure.is_pending() { PENDING } else { TROUBLE })
        }
    }
}

#[cfg(target_os = "linux")]
fn arguments() -> Result<Vec<String>, failure::Failure> {
    let valid = |argument: std::ffi::OsString| {
        argument
            .into_string()
            .map_err(|other| failure::Failure::new(format!("{} is not UTF-8", other.to_string_lossy())))
    };
    std::env::args_os().skip(1).map(valid).collect()
}

#[cfg(target_os = "linux")]
fn run(arguments: &[&str]) -> Result<(), failure::Failure> {
    match *arguments {
        ["ps"] => ps::run(),
        ["stack", pid, ref options @ ..] => stack::run(process::parse(pid)?, stack::Options::parse(options)?),
        ["check", pid] => inject::check(process::parse(pid)?),
        ["require", pid, path, seconds] => {
            inject::require(process::parse(pid)?, path, Duration::from_secs(number(seconds)?.into()))
        }
        ["core", path, ref options @ ..] => stack::run_core(path, stack::Options::parse(options)?),
        ["watch", pid, seconds, rate, ref options @ ..] => {
            stack::watch::run(process::parse(pid)?, seconds, rate, stack::Options::parse(options)?)
        }
        _ => Err(failure::Failure::new(format!("unknown arguments: {}", arguments.join(" ")))),
    }
}

#[cfg(target_os = "linux")]
fn number(text: &str) -> Result<u32, failure::Failure> {
    text.parse().map_err(|_| failure::Failure::new(format!("{text} is no number of seconds: 0 to {}", u32::MAX)))
}

#[cfg(not(target_os = "linux"))]
fn main() {}
