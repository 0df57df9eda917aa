//! How functions and classes are told apart: by the VM's objects until a flush has read their names, by name after
//! that, so that the profiler keeps no method or class alive longer than to the next flush.

use crate::vm::object::Type;
use memprofiler_core::stack_tree::FunctionKey;
use rb_sys::VALUE;

/// What a frame of a stored stack runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// An instruction sequence and a method entry, each or 0. The frame's position is an index into the code.
    Walked {
        /// The instruction sequence; 0 for a C function.
        iseq: VALUE,
        /// The method entry; 0 outside of methods.
        entry: VALUE,
    },
    /// What `rb_profile_frames` returned. The frame's position is a line.
    Profiled(VALUE),
    /// A name, an id in the collector's table of functions. The frame's position is a line.
    Named(u32),
    /// A whole stack in place of a function: the one that `Deferred` has under this number.
    Deferred(u32),
    /// Labels in place of a function, at the outer end of a stack: an id in the collector's table of label sets.
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

impl Function {
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

/// What a sampled object is an instance of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A class or singleton class, as the object's header says.
    Object(VALUE),
    /// A built-in type, for objects that Ruby code does not see.
    Internal(Type),
    /// A name, an id in the collector's table of classes.
    Named(u32),
    /// Not recorded.
    Unknown,
}

impl Class {
    /// As the class table stores it: heap references are multiples of 8, which the others are not.
    pub fn key(self) -> u64 {
        match self {
            Self::Object(class) => class,
            Self::Internal(kind) => u64::from(kind.0) << 3 | 2,
            Self::Named(id) => u64::from(id) << 3 | 1,
            Self::Unknown => 4,
        }
    }

    /// Undoes [`key`](Self::key).
    pub fn of(key: u64) -> Self {
        match key & 7 {
            0 => Self::Object(key as VALUE),
            1 => Self::Named((key >> 3) as u32),
            2 => Self::Internal(Type((key >> 3) as u8)),
            _ => Self::Unknown,
        }
    }

    /// From the header of an object.
    pub fn of_header(flags: VALUE, class: VALUE) -> Self {
        let kind = Type::of_flags(flags);
        if class == 0 || kind.is_internal() { Self::Internal(kind) } else { Self::Object(class) }
    }
}
