//! The lines of a ledger.

use serde::{Deserialize, Serialize};

/// What a line is about, in the order of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Key {
    /// The slots of live objects.
    ObjectSlots,
    /// What live objects own outside their slots.
    ObjectMemory,
    /// Instruction sequences.
    Code,
    /// Slots without an object, and what else is in the pages of the heap.
    FreeSlots,
    /// What the allocator keeps in memory though nobody uses it.
    AllocatorFree,
    /// What is allocated, but no object owns: the VM and libraries.
    VmMemory,
    /// Short-lived memory of objects, before Ruby 3.3.
    TransientHeap,
    /// What a JIT compiler has made.
    JitCode,
    /// Machine stacks.
    ThreadStacks,
    /// Pages of files that were written to.
    FilesPrivate,
    /// Other pages of files.
    FilesShared,
    /// The profiler's tables.
    Profiler,
    /// The rest.
    Unexplained,
}

impl Key {
    /// All.
    pub const ALL: [Self; 13] = [
        Self::ObjectSlots,
        Self::ObjectMemory,
        Self::Code,
        Self::FreeSlots,
        Self::AllocatorFree,
        Self::VmMemory,
        Self::TransientHeap,
        Self::JitCode,
        Self::ThreadStacks,
        Self::FilesPrivate,
        Self::FilesShared,
        Self::Profiler,
        Self::Unexplained,
    ];
}

/// How a figure was found.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Counted.
    Exact,
    /// Estimated, from samples or from what is usual.
    Estimated,
    /// What other lines leave.
    Remainder,
    /// Not found.
    #[default]
    Unknown,
}

/// A figure, and how it was found.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Figure {
    /// None if unknown.
    pub bytes: Option<u64>,
    /// The 95 % interval, of an estimate from samples.
    pub interval: Option<(u64, u64)>,
    /// See [`Source`].
    pub source: Source,
    /// What a reader must know.
    pub note: Option<String>,
}

impl Figure {
    /// What was counted.
    pub fn exact(bytes: u64) -> Self {
        Self { bytes: Some(bytes), source: Source::Exact, ..Self::default() }
    }

    /// What is about right.
    pub fn estimated(bytes: u64, note: &str) -> Self {
        Self { source: Source::Estimated, ..Self::exact(bytes) }.noting(note)
    }

    /// What others leave.
    pub fn remainder(bytes: u64) -> Self {
        Self { source: Source::Remainder, ..Self::exact(bytes) }
    }

    /// What could not be had, and why.
    pub fn unknown(note: &str) -> Self {
        Self::default().noting(note)
    }

    /// The same with another note in place of its own, if it has one.
    pub fn noting(self, note: &str) -> Self {
        Self { note: Some(note.to_owned()), ..self }
    }

    /// The same, but no more than is `left`, from which it is taken.
    pub(super) fn taken_from(mut self, left: &mut u64) -> Self {
        let Some(bytes) = self.bytes else { return self };
        self.bytes = Some(bytes.min(*left));
        self.interval = self.interval.map(|(low, high)| (low.min(*left), high));
        // What changed meanwhile is not worth a word.
        if bytes.saturating_sub(*left) > bytes / 32 {
            let note = format!("{bytes} bytes were counted, more than are in memory");
            self.note = Some(self.note.map_or_else(|| note.clone(), |own| format!("{own}; {note}")));
        }
        *left -= bytes.min(*left);
        self
    }

    /// As a line.
    pub(super) fn line(self, key: Key) -> Line {
        let Self { bytes, interval, source, note } = self;
        Line { key, bytes, low: interval.map(|(low, _)| low), high: interval.map(|(_, high)| high), source, note }
    }
}

/// A line of a ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// What it is about.
    pub key: Key,
    /// Bytes in memory; None if unknown, and part of a remainder.
    pub bytes: Option<u64>,
    /// The 95 % interval of an estimate from samples.
    pub low: Option<u64>,
    /// See `low`.
    pub high: Option<u64>,
    /// How it was found.
    pub source: Source,
    /// What a reader must know, in English.
    pub note: Option<String>,
}
