//! `ps`: the Ruby processes of this machine.

use crate::failure::Failure;
use crate::process::{State, Status, own_remedy};
use crate::ruby::Ruby;
use crate::text::{print, printable};
use std::fs;

/// Prints a table, and how many processes could not be looked into.
pub fn run() -> Result<(), Failure> {
    let mut lines = vec![format!("{:>7}  {:<7}  {:<8}  COMMAND", "PID", "RUBY", "PROFILER")];
    let mut hidden = 0;
    for pid in processes()? {
        match Ruby::in_process(pid) {
            Ok(Some(ruby)) => {
                let profiler = if ruby.has_profiler { "yes" } else { "no" };
                lines.push(format!("{pid:>7}  {:<7}  {profiler:<8}  {}", ruby.version, command(pid)));
            }
            Ok(None) => (),
            // Of others, or of the same user where Yama lets only parents look into processes.
            Err(_) => hidden += usize::from(Status::of(pid).is_ok_and(|status| status.state() != State::Ended)),
        }
    }
    if hidden > 0 {
        lines.push(format!("Processes that could not be looked into: {hidden}. To see all, {}.", own_remedy()));
    }
    print((lines.join("\n") + "\n").as_bytes())
}

fn processes() -> Result<Vec<i32>, Failure> {
    let entries = fs::read_dir("/proc").map_err(|error| Failure::new(format!("/proc: {error}")))?;
    let mut all: Vec<i32> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    all.sort_unstable();
    Ok(all)
}

/// The command line, with blanks between the words; a program can change it.
fn command(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    printable(String::from_utf8_lossy(&bytes).replace('\0', " ").trim_end())
}
