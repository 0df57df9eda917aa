//! Makes lines of figures, so that they add up to what the process has in memory.

use super::line::{Figure, Key, Line};

/// What was measured.
#[derive(Debug, Default, Clone)]
pub struct Account {
    /// What the process has in memory; None if unknown.
    pub resident: Option<u64>,
    /// Lines of what has places of its own.
    pub files_shared: Figure,
    /// See [`Key::FilesPrivate`].
    pub files_private: Figure,
    /// See [`Key::ThreadStacks`].
    pub thread_stacks: Figure,
    /// See [`Key::JitCode`].
    pub jit_code: Figure,
    /// See [`Key::TransientHeap`].
    pub transient_heap: Figure,
    /// The pages of Ruby's heap in memory.
    pub heap_pages: Figure,
    /// The slots of live objects in them.
    pub object_slots: Figure,
    /// All that the allocator has in memory, and what the VM maps for itself; unknown if that cannot be told from the
    /// rest.
    pub allocated: Figure,
    /// The part of it that is in no use.
    pub allocator_free: Figure,
    /// The part of it that the profiler's tables are.
    pub profiler: Figure,
    /// The part of it that instruction sequences are.
    pub code: Figure,
    /// The part of it that objects own.
    pub object_memory: Figure,
}

impl Account {
    /// The lines, in the order of their keys. Those with bytes add up to [`resident`](Self::resident), if that is
    /// known: what was counted first leaves the rest for what follows, and the last gets what is left.
    pub fn lines(self) -> Vec<Line> {
        let known = self.resident.is_some();
        let mut left = self.resident.unwrap_or(u64::MAX);
        let mut lines = Vec::with_capacity(Key::ALL.len());
        let places = [
            (Key::FilesShared, self.files_shared),
            (Key::FilesPrivate, self.files_private),
            (Key::ThreadStacks, self.thread_stacks),
            (Key::JitCode, self.jit_code),
            (Key::TransientHeap, self.transient_heap),
        ];
        lines.extend(places.map(|(key, figure)| figure.taken_from(&mut left).line(key)));
        let [slots, free] = heap(self.heap_pages, self.object_slots, &mut left);
        lines.extend([slots.line(Key::ObjectSlots), free.line(Key::FreeSlots)]);
        let claimed = self.allocated.bytes.unwrap_or(0);
        let told_apart = self.allocated.bytes.is_some();
        let allocated = if told_apart { self.allocated } else { Figure::exact(left) }.taken_from(&mut left);
        let mut within = allocated.bytes.unwrap_or(0);
        // Looking itself takes some memory.
        let note = allocated.note.filter(|_| claimed.saturating_sub(within) > self.resident.unwrap_or(0) / 32);
        let parts = [
            (Key::AllocatorFree, self.allocator_free),
            (Key::Profiler, self.profiler),
            (Key::Code, self.code),
            (Key::ObjectMemory, self.object_memory),
        ];
        lines.extend(parts.map(|(key, figure)| figure.taken_from(&mut within).line(key)));
        let (vm_memory, unexplained) = match (known, told_apart) {
            (true, true) => (Figure { note, ..Figure::remainder(within) }, Figure::remainder(left)),
            (true, false) => (
                Figure::remainder(within).noting("whatever cannot be told from the allocator's memory counts here"),
                Figure::unknown("cannot be told from what the VM and libraries have allocated"),
            ),
            (false, _) => {
                let unknown = || Figure::unknown("what the process has in memory is unknown");
                (unknown(), unknown())
            }
        };
        lines.extend([vm_memory.line(Key::VmMemory), unexplained.line(Key::Unexplained)]);
        lines.sort_by_key(|line| line.key);
        lines
    }
}

/// The lines of slots with and without objects, which are taken from what is `left`.
fn heap(pages: Figure, slots: Figure, left: &mut u64) -> [Figure; 2] {
    let pages = pages.taken_from(left);
    match (pages.bytes, slots.bytes) {
        (Some(mut within), Some(_)) => {
            let slots = slots.taken_from(&mut within);
            [slots, Figure { bytes: Some(within), ..pages }]
        }
        (Some(_), None) => [slots, pages.noting("with objects: how many slots have one is unknown")],
        (None, _) => [slots.taken_from(left), pages],
    }
}
