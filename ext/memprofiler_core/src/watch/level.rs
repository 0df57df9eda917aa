//! How much memory is too much.

/// What is asked to stay below it, and how much that is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Level {
    /// What the cgroup uses, as a part of its limit in `0.0..=1.0`.
    Part(f64),
    /// What this process has in physical memory, in bytes.
    Resident(u64),
}

impl Level {
    /// The bytes that a level stands for; None if it is part of a limit that does not exist.
    pub fn bytes(self, limit: Option<u64>) -> Option<u64> {
        match self {
            Self::Part(part) => limit.map(|limit| (limit as f64 * part) as u64),
            Self::Resident(bytes) => Some(bytes),
        }
    }
}
