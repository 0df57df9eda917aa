//! The limit on a process's memory.

use crate::headroom::{self, Headroom};
use crate::linux;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version 1 of cgroups says this or more where there is no limit.
const UNLIMITED: u64 = 1 << 60;

/// The limit of a cgroup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// In bytes.
    pub bytes: u64,
    /// What counts of it, without what the kernel would give back first.
    pub usage_bytes: u64,
    /// Whose limit it is.
    pub kind: String,
}

impl Limit {
    /// The one that leaves the least, if there is one, from the files of Linux below `root`.
    pub fn read(root: &Path) -> Option<Self> {
        let bounds = Headroom::read(root).bounds;
        let limits = bounds.iter().filter_map(|bound| {
            let headroom::Limit::Cgroup(file) = &bound.by else { return None };
            let bytes: u64 = linux::read(file).ok()?.trim().parse().ok()?;
            let old = file.file_name().is_some_and(|name| name == "memory.limit_in_bytes");
            (bytes < UNLIMITED).then(|| Self {
                bytes,
                usage_bytes: bytes.saturating_sub(bound.left),
                kind: if old { "cgroup v1" } else { "cgroup v2" }.to_owned(),
            })
        });
        limits.min_by_key(|limit| limit.bytes - limit.usage_bytes)
    }
}
