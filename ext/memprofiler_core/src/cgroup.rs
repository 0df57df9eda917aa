//! The files in which Linux says how much memory a cgroup may use.

use crate::linux;
use std::path::{Path, PathBuf};

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
    /// How often the limit was reached: the first of these that exists. (Before Linux 5.2 version 2 had that of all
    /// cgroups below it only.)
    pub events: &'static [&'static str],
}

pub(crate) const VERSION_1: Files = Files {
    version: 1,
    limit: "memory.limit_in_bytes",
    limits: &["memory.limit_in_bytes"],
    usage: "memory.usage_in_bytes",
    cache: "total_inactive_file",
    events: &["memory.failcnt"],
};

pub(crate) const VERSION_2: Files = Files {
    version: 2,
    limit: "memory.max",
    limits: &["memory.max", "memory.high"],
    usage: "memory.current",
    cache: "inactive_file",
    events: &["memory.events.local", "memory.events"],
};

impl Files {
    /// Those beside a file with a limit.
    pub fn beside(limit: &Path) -> &'static Self {
        if limit.ends_with(VERSION_1.limit) { &VERSION_1 } else { &VERSION_2 }
    }
}

/// The directories of all cgroups with memory that this process is in, from the innermost on, by the files below `root`,
/// which is "/" but for tests. In a container the path may be the host's: then its own cgroup is what is mounted.
pub(crate) fn all(root: &Path) -> impl Iterator<Item = (PathBuf, &'static Files)> {
    let mount = root.join("sys/fs/cgroup");
    // A line is like `0::/app.slice` for version 2, and there is one per hierarchy for version 1, whose second part
    // names the controllers.
    let memberships = linux::read(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut found = Vec::new();
    for line in memberships.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let mut add = |mount: &Path, files| {
            let ancestors = Path::new(path.trim_start_matches('/')).ancestors();
            found.extend(ancestors.map(|ancestor| (mount.join(ancestor), files)));
        };
        if controllers.is_empty() {
            add(&mount, &VERSION_2);
            // Where version 1 has the controllers.
            add(&mount.join("unified"), &VERSION_2);
        } else if controllers.split(',').any(|controller| controller == "memory") {
            add(&mount.join("memory"), &VERSION_1);
        }
    }
    found.into_iter()
}

/// The bytes of a limit; None if there is none.
pub(crate) fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|&bytes| bytes < UNLIMITED)
}
