//! What frames stand for. Functions are known by the VM's objects until a flush has read their names, and by name after
//! that, so that the profiler keeps no method alive beyond the next flush. Other kinds stand in place of a function.

use memprofiler_core::stack_tree::FunctionKey;
use rb_sys::VALUE;

/// What a frame of a stored stack stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// An instruction sequence and a method entry, either of which can be 0. The frame's position is an index into the
    /// code.
    Walked {
        /// The instruction sequence; 0 for a C function.
        iseq: VALUE,
        /// The method entry; 0 outside methods.
        entry: VALUE,
    },
    /// An object from `rb_profile_frames`. The frame's position is a line.
    Profiled(VALUE),
    /// A name, an id in the table of function names. The frame's position is a line.
    Named(u32),
    /// A whole stack in place of a function: the one deferred under this number.
    Deferred(u32),
    /// Labels in place of a function, at the outer end of a stack: an id in the table of label sets.
    Labels(u32),
    /// A Thread in place of a function, at the outer end of a stack.
    Thread(VALUE),
    /// A span in place of a function, at the inner end of an exemplar's stack: its number.
    Span(u64),
}

// None of these is a heap reference.
const NAMED: u64 = 1;
const PROFILED: u64 = 3;
const DEFERRED: u64 = 5;
const LABELS: u64 = 7;
const THREAD: u64 = 9;
const SPAN: u64 = 11;

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
            Self::Span(number) => FunctionKey { code: SPAN, owner: number << 1 | 1 },
        }
    }

    /// The inverse of [`key`](Self::key).
    pub fn of(key: FunctionKey) -> Self {
        match key.code {
            NAMED => Self::Named((key.owner >> 1) as u32),
            DEFERRED => Self::Deferred((key.owner >> 1) as u32),
            LABELS => Self::Labels((key.owner >> 1) as u32),
            PROFILED => Self::Profiled(key.owner as VALUE),
            THREAD => Self::Thread(key.owner as VALUE),
            SPAN => Self::Span(key.owner >> 1),
            _ => Self::Walked { iseq: key.code as VALUE, entry: key.owner as VALUE },
        }
    }
}
