//! What frames stand for: functions, known by the VM's objects until a flush has read their names and by name after that,
//! so that the profiler keeps no method alive longer than to the next flush; or what takes the place of one.

use memprofiler_core::stack_tree::FunctionKey;
use rb_sys::VALUE;

/// What a frame of a stored stack stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// An instruction sequence and a method entry, each or 0. The frame's position is an index into the code.
    Walked {
        /// The instruction sequence; 0 for a C function.
        iseq: VALUE,
        /// The method entry; 0 outside of methods.
        entry: VALUE,
    },
    /// What `rb_profile_frames` returned. The frame's position is a line.
    Profiled(VALUE),
    /// A name, an id in the table of function names. The frame's position is a line.
    Named(u32),
    /// A whole stack in place of a function: the one that was deferred under this number.
    Deferred(u32),
    /// Labels in place of a function, at the outer end of a stack: an id in the table of label sets.
    Labels(u32),
    /// A Thread in place of a function, at the outer end of a stack.
    Thread(VALUE),
}

// None is a reference to the heap.
const NAMED: u64 = 1;
const PROFILED: u64 = 3;
const DEFERRED: u64 = 5;
const LABELS: u64 = 7;
const THREAD: u64 = 9;

impl FrameKind {
    /// As the stack tree stores it.
    pub fn key(self) -> FunctionKey {
        match self {
            Self::Walked { iseq, entry } => FunctionKey { code: iseq, owner: entry },
            Self::Profiled(frame) => FunctionKey { code: PROFILED, owner: frame },
            Self::Named(id) => FunctionKey { code: NAMED, owner: u64::from(id) << 1 | 1 },
            Self::Deferred(number) => FunctionKey { code: DEFERRED, owner: u64::from(number) << 1 | 1 },
            Self::Labels(id) => FunctionKey { code: LABELS, owner: u64::from(id) << 1 | 1 },
            Self::Thread(thread) => FunctionKey { code: THREAD, owner: thread },
        }
    }

    /// Undoes [`key`](Self::key).
    pub fn of(key: FunctionKey) -> Self {
        match key.code {
            NAMED => Self::Named((key.owner >> 1) as u32),
            DEFERRED => Self::Deferred((key.owner >> 1) as u32),
            LABELS => Self::Labels((key.owner >> 1) as u32),
            PROFILED => Self::Profiled(key.owner as VALUE),
            THREAD => Self::Thread(key.owner as VALUE),
            _ => Self::Walked { iseq: key.code as VALUE, entry: key.owner as VALUE },
        }
    }
}
