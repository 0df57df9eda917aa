//! The ways to read stacks.

/// How stacks are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BacktraceMethod {
    /// By walking the VM's control frames.
    ControlFrames,
    /// By `rb_profile_frames`.
    ProfileFrames,
    /// By Ruby's own backtrace, at the next safe point after the allocation.
    BacktraceLocations,
}

impl BacktraceMethod {
    /// The symbol that users know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::ControlFrames => "cfp",
            Self::ProfileFrames => "profile_frames",
            Self::BacktraceLocations => "backtrace_locations",
        }
    }
}
