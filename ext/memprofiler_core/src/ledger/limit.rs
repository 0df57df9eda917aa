//! The limit on a process's memory.

use crate::cgroup::{self, Files};
use crate::headroom::{self, Headroom};
use crate::linux;
use serde::{Deserialize, Serialize};
use std::path::Path;

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
            let bytes = cgroup::limit(&linux::read(file).ok()?)?;
            let version = Files::beside(file).version;
            Some(Self { bytes, usage_bytes: bytes.saturating_sub(bound.left), kind: format!("cgroup v{version}") })
        });
        limits.min_by_key(|limit| limit.bytes - limit.usage_bytes)
    }
}
