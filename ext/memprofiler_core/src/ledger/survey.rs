//! What a process has in memory, by where it is.

use super::glibc;
use super::mapping::{Kind, Mapping, Usage};
use super::residency::Residency;
use std::ops::Range;

/// The addresses of a process.
pub trait Space {
    /// Which of the pages at these addresses are in memory; None if that cannot be found out.
    fn residency(&self, addresses: &Range<u64>) -> Option<Residency>;

    /// The four words at an address; None if it cannot be read.
    fn words(&self, address: u64) -> Option<[u64; 4]>;

    /// The size of a page in bytes.
    fn page_size(&self) -> u64;
}

/// What is known of where parts of anonymous memory are.
#[derive(Debug, Default)]
pub struct Places {
    /// The pages of Ruby's heap, in order.
    pub heap_pages: Vec<Range<u64>>,
    /// The transient heap.
    pub transient_heap: Option<Range<u64>>,
    /// What the VM has mapped for itself.
    pub of_vm: Vec<Range<u64>>,
    /// What the profiler has mapped for itself.
    pub of_profiler: Vec<Range<u64>>,
    /// The stacks of VM threads. They are malloc'ed, and mostly never touched.
    pub vm_stacks: Vec<Range<u64>>,
    /// Where the machine stacks of threads that wait end, as far as that is known: the guards below stacks are no
    /// mappings of their own everywhere.
    pub stack_pointers: Vec<u64>,
    /// Whether malloc is glibc's, whose memory is known by its content.
    pub glibc: bool,
    /// Whether to look for glibc's blocks with mappings of their own, which takes a read for each page.
    pub mapped_blocks: bool,
    /// The most bytes of addresses that are looked at page by page.
    pub most: u64,
}

/// What a process has in memory, in bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Survey {
    /// Sums over all mappings; None where the list of mappings does not say it.
    pub usage: Option<Usage>,
    /// The part of it that is anonymous and that other processes have as well, since they were forked from one another.
    pub shared_anonymous: u64,
    /// The part of it that is anonymous and that no other process has.
    pub private_anonymous: u64,
    /// Pages of files and the kernel.
    pub files_shared: u64,
    /// Pages of files that were written to and so became the process's own.
    pub files_private: u64,
    /// Machine stacks.
    pub thread_stacks: u64,
    /// What can be executed and is in no file.
    pub jit_code: u64,
    /// See [`Places`].
    pub heap_pages: u64,
    /// See [`Places`].
    pub transient_heap: u64,
    /// See [`Places::of_vm`].
    pub of_vm: u64,
    /// See [`Places::of_profiler`].
    pub of_profiler: u64,
    /// What `brk` has grown and the heaps of arenas.
    pub arenas: u64,
    /// The part of [`Places::vm_stacks`] in arenas that is not in memory.
    pub untouched_in_arenas: u64,
    /// The same elsewhere.
    pub untouched_elsewhere: u64,
    /// Blocks with mappings of their own; 0 if they were not looked for.
    pub mapped_blocks: u64,
    /// Other anonymous memory.
    pub other: u64,
    /// Whether all pages were looked at, so that the parts of anonymous memory are known.
    pub complete: bool,
}

/// The most bytes of a machine stack that share a mapping with something else.
const MERGED_STACK: u64 = 2 << 20;
/// No machine stack is larger by default.
const LARGEST_STACK: u64 = 8 << 20;
/// The most bytes of a guard below a stack.
const GUARD: u64 = 64 << 10;

impl Survey {
    /// Of all `mappings` of a process, in order.
    pub fn new(mappings: &[Mapping], places: &Places, space: &impl Space) -> Self {
        let mut survey = Self { complete: true, ..Self::default() };
        let mut left = places.most;
        let mut before: Option<&Mapping> = None;
        for (number, mapping) in mappings.iter().enumerate() {
            let guarded = before.is_some_and(|before| is_guard(before, mapping));
            before = Some(mapping);
            let absent = mapping.usage.map_or(!mapping.readable, |usage| usage.resident == 0);
            if absent {
                continue;
            }
            survey.add_usage(mapping);
            let mut residency = || {
                left = left.checked_sub(mapping.size())?;
                space.residency(&(mapping.start..mapping.end))
            };
            match (mapping.kind, mapping.usage) {
                (Kind::System, usage) => survey.files_shared += usage.unwrap_or_default().resident,
                (Kind::File, Some(usage)) => {
                    survey.files_private += usage.anonymous;
                    survey.files_shared += usage.resident.saturating_sub(usage.anonymous);
                }
                (Kind::File, None) if !was_relocated(mapping, mappings.get(number + 1)) => {}
                (kind, usage) => {
                    let Some(residency) = residency() else {
                        survey.add_unseen(mapping, usage);
                        continue;
                    };
                    let resident = residency.resident();
                    match kind {
                        Kind::File => survey.files_private += residency.anonymous(),
                        Kind::Stack => survey.thread_stacks += resident,
                        _ if mapping.executable => survey.jit_code += resident,
                        _ => survey.add_anonymous(mapping, residency, guarded, places, space),
                    }
                }
            }
        }
        survey
    }

    /// What is anonymous and not a stack: the allocator's, if all other parts are known.
    pub fn allocated(&self) -> u64 {
        self.arenas + self.mapped_blocks + self.other
    }

    fn add_usage(&mut self, mapping: &Mapping) {
        let Some(usage) = mapping.usage else { return };
        if !matches!(mapping.kind, Kind::File | Kind::System) {
            self.shared_anonymous += usage.shared;
            self.private_anonymous += usage.private;
        }
        let sum = self.usage.get_or_insert_default();
        sum.resident += usage.resident;
        sum.anonymous += usage.anonymous;
        sum.shared += usage.shared;
        sum.private += usage.private;
        sum.swap += usage.swap;
    }

    /// A mapping whose pages are not known one by one.
    fn add_unseen(&mut self, mapping: &Mapping, usage: Option<Usage>) {
        let resident = usage.unwrap_or_default().resident;
        match mapping.kind {
            Kind::Stack => self.thread_stacks += resident,
            Kind::Heap => self.arenas += resident,
            _ if mapping.executable => self.jit_code += resident,
            _ => self.other += resident,
        }
        self.complete &= mapping.kind == Kind::Stack && usage.is_some();
    }

    fn add_anonymous(
        &mut self,
        mapping: &Mapping,
        mut residency: Residency,
        guarded: bool,
        places: &Places,
        space: &impl Space,
    ) {
        let (all, page_size) = (mapping.start..mapping.end, space.page_size());
        let first = places.heap_pages.partition_point(|page| page.end <= mapping.start);
        for page in places.heap_pages[first..].iter().take_while(|page| page.start < mapping.end) {
            self.heap_pages += residency.take(page);
        }
        if let Some(transient) = &places.transient_heap {
            self.transient_heap += residency.take(transient);
        }
        let mut take = |ranges: &[Range<u64>]| ranges.iter().map(|range| residency.take(range)).sum::<u64>();
        self.of_vm += take(&places.of_vm);
        self.of_profiler += take(&places.of_profiler);
        let pages = residency.clone();
        let untouched = |range: &Range<u64>| {
            let stacks = places.vm_stacks.iter().filter(|stack| range.contains(&stack.start));
            stacks.map(|stack| (stack.end - stack.start).saturating_sub(pages.inside(stack))).sum::<u64>()
        };
        let before = self.untouched_in_arenas;
        let arenas = match mapping.kind {
            Kind::Heap => vec![all.clone()],
            _ if places.glibc && mapping.writable => glibc::heaps(&all, page_size, space),
            _ => Vec::new(),
        };
        for arena in arenas {
            self.untouched_in_arenas += untouched(&arena);
            self.arenas += residency.take(&arena);
        }
        let machine_stack = mapping.start..mapping.start + if guarded { stack_size(mapping) } else { 0 };
        // Before Ruby 3.3, a VM stack is a part of its thread's machine stack.
        let elsewhere = untouched(&all).saturating_sub(untouched(&machine_stack));
        self.untouched_elsewhere += elsewhere.saturating_sub(self.untouched_in_arenas - before);
        if places.glibc && places.mapped_blocks && mapping.writable {
            self.mapped_blocks += glibc::take_mapped_blocks(&mut residency, &all, page_size, space);
        }
        self.thread_stacks += residency.take(&machine_stack);
        for &pointer in places.stack_pointers.iter().filter(|&pointer| all.contains(pointer)) {
            self.thread_stacks += residency.take_around(pointer, MERGED_STACK);
        }
        self.other += residency.take(&all);
    }
}

/// The most bytes at the beginning of a mapping that a machine stack has.
fn stack_size(mapping: &Mapping) -> u64 {
    if mapping.size() <= LARGEST_STACK { mapping.size() } else { MERGED_STACK }
}

/// Whether a mapping of a file can have been written to: it still can be, or it is the part of a library before its
/// data that the linker writes to once.
fn was_relocated(mapping: &Mapping, next: Option<&Mapping>) -> bool {
    let is_data = |next: &Mapping| next.kind == Kind::File && next.writable && next.start == mapping.end;
    mapping.writable || !mapping.executable && next.is_some_and(is_data)
}

/// Whether `before` is the guard below a stack at the beginning of `mapping`.
fn is_guard(before: &Mapping, mapping: &Mapping) -> bool {
    before.kind == Kind::Anonymous
        && !before.readable
        && !before.writable
        && before.end == mapping.start
        && before.size() <= GUARD
        && mapping.writable
}
