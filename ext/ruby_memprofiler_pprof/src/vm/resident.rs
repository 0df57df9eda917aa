//! How much memory the process has, according to the kernel.

use std::fs::File;
use std::io::Read;

/// The bytes that are resident; None where there is no /proc. Allocates nothing, so a hook may call it.
pub fn now() -> Option<u64> {
    status("VmRSS:")
}

/// The most bytes that have been resident at a time; None where there is no /proc.
pub fn highest() -> Option<u64> {
    status("VmHWM:")
}

/// A line of the process's status, which gives kilobytes.
fn status(name: &str) -> Option<u64> {
    // What comes before these lines has far fewer bytes.
    let mut text = [0; 4096];
    let len = File::open("/proc/self/status").ok()?.read(&mut text).ok()?;
    // The name of the program has any bytes.
    let line = text.get(..len)?.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(name.as_bytes()))?;
    let kilobytes = std::str::from_utf8(line).ok()?.trim().strip_suffix(" kB")?;
    Some(kilobytes.parse::<u64>().ok()? << 10)
}
