//! Where the memory of this process is, as far as it can be told from inside: from Linux's files, the allocator's
//! statistics, and the pages of Ruby's heap.

mod account;
mod allocator;
mod heap_figures;
mod heap_walk;
mod shapes;
mod space;
mod transient;

pub use heap_walk::HeapWalk;
pub use space::page_size;
pub use transient::is_owner as is_transient;

use super::clock;
use super::frames::LAYOUT;
use super::gvl::without_gvl;
use super::layout::{EC_VM_STACK, EC_VM_STACK_SIZE};
use crate::allocator::large_blocks;
use crate::faults;
use account::Facts;
use allocator::{Allocator, Statistics};
use heap_figures::HeapFigures;
use magnus::{Error, Ruby};
use memprofiler_core::ledger::{Account, HeapPage, Mapping, Places, Process, Space, Survey, Usage, stack_pointer};
use memprofiler_core::linux;
use space::OwnSpace;
use std::fs::read_dir;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many bytes of addresses are looked at page by page, at most.
const MOST: u64 = 16 << 30;
/// How many bytes of memory a quick measurement looks at, about.
const MOST_QUICKLY: u64 = 32 << 20;
/// If the allocator takes more CPU time than this for its statistics, during which it may let other threads wait, a
/// quick measurement asks it seldom. The rest takes 2 ms.
const SLOW: Duration = Duration::from_millis(3);
/// How long it then waits: a minute for each millisecond, and this at least.
const SELDOM: Duration = Duration::from_secs(600);
const MINUTE_PER_MILLISECOND: u32 = 60_000;

/// What was measured.
#[derive(Debug)]
pub struct Measurement {
    /// For the lines, without what a collector knows.
    pub account: Account,
    /// From `/proc/self/status`.
    pub process: Process,
    /// Sums over all mappings.
    pub usage: Option<Usage>,
    /// Pages that only this process has, of those that it had in common with the one that it was forked from.
    pub copied: Option<u64>,
    /// Pages of the heap without objects.
    pub empty_pages: Option<u64>,
    /// The allocator's name.
    pub allocator: String,
    /// What the walk over the heap has found, if there was one.
    pub walk: Option<HeapWalk>,
}

/// What an allocator has said.
#[derive(Debug, Clone, Copy)]
enum Said {
    Statistics(Statistics),
    /// It keeps none.
    Nothing,
    /// It was not asked, since it takes long.
    NotAsked,
}

/// The process that a collector was started in or forked into last: in a child that was just forked, its parent.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The process that this one was forked from, 0 if none is known, and the bytes that it had in common with it.
static PARENT: AtomicU32 = AtomicU32::new(0);
static COMMON: AtomicU64 = AtomicU64::new(0);
/// When the allocator was asked last, and the CPU time that it took.
static ASKED: Mutex<Option<(Instant, Duration)>> = Mutex::new(None);

/// Remembers which process this is, for the children that it may fork.
pub fn note_process() {
    PROCESS.store(std::process::id(), Ordering::Relaxed);
}

/// For a forked child, before it changes anything: remembers what it has in common with its parent.
pub fn after_fork() {
    let parent = PROCESS.swap(std::process::id(), Ordering::Relaxed);
    // Another collector may have been first.
    if parent != std::process::id() {
        let common = process().anonymous;
        COMMON.store(common.unwrap_or(0), Ordering::Relaxed);
        PARENT.store(common.map_or(0, |_| parent), Ordering::Relaxed);
    }
}

/// The part of a quick measurement that needs the GVL.
#[derive(Debug)]
pub struct Glance {
    figures: HeapFigures,
    transient_heap: Option<Range<u64>>,
    allocator: Allocator,
    profiler: u64,
}

/// Begins to measure what can be found in a few milliseconds; `profiler` is the size of the profiler's tables. May run
/// Ruby code.
///
/// # Errors
/// What signals or other threads raise meanwhile.
pub fn glance(ruby: &Ruby, profiler: u64) -> Result<Glance, Error> {
    let figures = HeapFigures::read(ruby)?;
    // No file stays open meanwhile, which a child that another thread forks would inherit.
    Ok(Glance { figures, transient_heap: transient::find(OwnSpace::open), allocator: Allocator::find(), profiler })
}

impl Glance {
    /// The rest, which asks the kernel and the allocator, for most of the time.
    pub fn measure(self) -> Measurement {
        let Self { figures, transient_heap, allocator, profiler } = self;
        let mut space = OwnSpace::open();
        space.nth = process().resident.unwrap_or(0).div_ceil(MOST_QUICKLY).max(1) as usize;
        let has_transient_heap = transient_heap.is_some();
        let glibc = matches!(allocator, Allocator::Glibc(_));
        let (of_profiler, profiler_pages) = own_pages();
        let places = Places {
            transient_heap,
            of_profiler,
            glibc,
            most: MOST,
            stack_pointers: stack_pointers(),
            ..Places::default()
        };
        let survey = survey("/proc/self/maps", places, &space);
        let said = ask(allocator, true);
        let process = process();
        let (nth, walk) = (space.nth, None);
        Facts { allocator, said, survey, figures, has_transient_heap, nth, walk, profiler, profiler_pages, process }
            .measurement()
    }
}

/// Everything, with a walk over the heap in slices; calls `rest` between them. Gives up the GVL at the end. `profiler`
/// is as for [`glance`], in case there can be no walk.
///
/// # Errors
/// As for [`glance`], those of `rest`, and what an extension's function for measuring raises twice.
///
/// # Safety
/// The GVL must be held, and there must be no other Ractors.
pub unsafe fn measure_all(
    ruby: &Ruby,
    profiler: u64,
    rest: impl FnMut() -> Result<(), Error>,
) -> Result<Measurement, Error> {
    let page_size = HeapFigures::read(ruby)?.page_size;
    let Some(page_size) = page_size.filter(|&size| size > 0) else {
        let glance = glance(ruby, profiler)?;
        return Ok(without_gvl(|| glance.measure()));
    };
    // SAFETY: as required of the caller.
    let walk = unsafe { heap_walk::walk(ruby, page_size, rest) }?;
    let figures = HeapFigures::read(ruby)?;
    let (space, allocator) = (OwnSpace::open(), Allocator::find());
    let transient_heap = transient::find(OwnSpace::open);
    Ok(without_gvl(move || {
        let has_transient_heap = transient_heap.is_some();
        let (of_profiler, profiler_pages) = own_pages();
        let places = Places {
            heap_pages: joined(&walk.pages),
            transient_heap,
            of_profiler,
            vm_stacks: walk.threads.iter().filter_map(|&thread| vm_stack(thread, &space)).collect(),
            glibc: matches!(allocator, Allocator::Glibc(_)),
            mapped_blocks: true,
            stack_pointers: stack_pointers(),
            most: MOST,
            ..Places::default()
        };
        let survey = survey("/proc/self/smaps", places, &space);
        let said = ask(allocator, false);
        let process = process();
        let (nth, profiler, walk) = (1, walk.profiler, Some(walk));
        Facts { allocator, said, survey, figures, has_transient_heap, nth, walk, profiler, profiler_pages, process }
            .measurement()
    }))
}

/// Where the profiler has pages of its own, and their size.
fn own_pages() -> (Vec<Range<u64>>, u64) {
    let blocks = large_blocks();
    let bytes = blocks.iter().map(|block| block.end - block.start).sum();
    (blocks, bytes)
}

fn survey(mappings: &str, places: Places, space: &OwnSpace) -> Option<Survey> {
    let mappings = Mapping::parse(&read(mappings)?);
    let places = Places { of_vm: shapes::find(&mappings, space), ..places };
    Some(Survey::new(&mappings, &places, space))
}

/// The content of a file of Linux's.
fn read(path: &str) -> Option<String> {
    if faults::denied(path) { None } else { linux::read(path).ok() }
}

/// The allocator's statistics, unless it takes long for them and they must be had `quickly`. Older ones would be no
/// use: what was allocated since would count as free.
fn ask(allocator: Allocator, quickly: bool) -> Said {
    // Nobody waits for the lock: a fork may have copied it while another thread held it.
    let last = ASKED.try_lock().ok().and_then(|asked| *asked);
    let pause = |took: Duration| SELDOM.max(took.saturating_mul(MINUTE_PER_MILLISECOND));
    if last.is_some_and(|(at, took)| quickly && took > SLOW && at.elapsed() < pause(took)) {
        return Said::NotAsked;
    }
    let start = clock::thread_cpu();
    let statistics = allocator.statistics();
    if let Ok(mut last) = ASKED.try_lock() {
        *last = Some((Instant::now(), clock::thread_cpu().saturating_sub(start)));
    }
    statistics.map_or(Said::Nothing, Said::Statistics)
}

fn process() -> Process {
    read("/proc/self/status").map(|status| Process::parse(&status)).unwrap_or_default()
}

/// Where the stacks of this thread and of those that wait end.
fn stack_pointers() -> Vec<u64> {
    /// A thread takes some 5 µs.
    const MOST_THREADS: usize = 128;
    let here = 0_u8;
    let threads = read_dir("/proc/self/task").into_iter().flatten().flatten().take(MOST_THREADS);
    let waiting = threads.filter_map(|thread| stack_pointer(&linux::read(thread.path().join("syscall")).ok()?));
    waiting.chain([(&raw const here) as u64]).collect()
}

/// The addresses of pages, which are in order; those without a gap between them become one range.
fn joined(pages: &[HeapPage]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for page in pages {
        match ranges.last_mut() {
            Some(last) if last.end == page.start => last.end = page.end,
            _ => ranges.push(page.start..page.end),
        }
    }
    ranges
}

/// The stack on which the VM keeps a thread's frames; None if there is none.
fn vm_stack(thread: u64, space: &OwnSpace) -> Option<Range<u64>> {
    const _: () = assert!(EC_VM_STACK == 0 && EC_VM_STACK_SIZE == 8);
    /// No program has larger ones.
    const LARGEST: u64 = 64 << 20;
    let [context, ..] = space.words(thread + LAYOUT?.thread_ec as u64)?;
    let [start, words, ..] = space.words(context)?;
    let bytes = words.checked_mul(8).filter(|&bytes| bytes <= LARGEST)?;
    (start != 0).then(|| start..start.saturating_add(bytes))
}
