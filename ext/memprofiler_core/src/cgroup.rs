//! The files in which Linux says how much memory a cgroup may use.

use std::path::Path;

/// Version 1 gives a number like this, or a greater one, where there is no limit.
const UNLIMITED: u64 = 1 << 60;

/// The names of one version's files.
#[derive(Debug)]
pub(crate) struct Files {
    /// 1 or 2.
    pub version: u8,
    /// The limit at which the kernel kills.
    pub limit: &'static str,
    /// All limits.
    pub limits: &'static [&'static str],
    pub usage: &'static str,
    /// The field of `memory.stat` with the part of the usage that the kernel gives back first: files that were read and
    /// not lately used.
    pub cache: &'static str,
    /// How often the limit was reached.
    pub events: &'static str,
}

pub(crate) const VERSION_1: Files = Files {
    version: 1,
    limit: "memory.limit_in_bytes",
    limits: &["memory.limit_in_bytes"],
    usage: "memory.usage_in_bytes",
    cache: "total_inactive_file",
    events: "memory.failcnt",
};

pub(crate) const VERSION_2: Files = Files {
    version: 2,
    limit: "memory.max",
    limits: &["memory.max", "memory.high"],
    usage: "memory.current",
    cache: "inactive_file",
    events: "memory.events",
};

impl Files {
    /// Those beside a file with a limit.
    pub fn beside(limit: &Path) -> &'static Self {
        if limit.ends_with(VERSION_1.limit) { &VERSION_1 } else { &VERSION_2 }
    }
}

/// The bytes of a limit; None if there is none.
pub(crate) fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|&bytes| bytes < UNLIMITED)
}
