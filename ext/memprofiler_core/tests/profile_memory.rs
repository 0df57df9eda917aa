//! How much memory profiles take at most, for what they have in a file: see docs/security.md.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a failure")]

use flate2::read::GzDecoder;
use memprofiler_core::analysis::{self, By, TreeOptions};
use memprofiler_core::interrupt::Interrupt;
use memprofiler_core::pprof;
use memprofiler_core::profile::{
    Builder, EMPTY_STACK, Function, Header, Line, Location, Profile, Row, Scheme, ValueType,
};
use memprofiler_core::window_group::WindowGroup;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Read;
use std::sync::Arc;

thread_local! {
    /// How many bytes each thread has allocated and not freed, and the most since it was last asked.
    static HELD: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: delegates everything to the system's allocator. The counters need no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get().wrapping_add(layout.size()));
        MOST.set(MOST.get().max(HELD.get()));
        // SAFETY: the caller keeps the contract of `alloc`, which is also the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.set(HELD.get().wrapping_sub(layout.size()));
        // SAFETY: the caller keeps the contract of `dealloc`, which is also the system allocator's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How many bytes `work` holds at most, including what it returns.
fn most<T>(work: impl FnOnce() -> T) -> usize {
    let before = HELD.get();
    MOST.set(before);
    work();
    MOST.get() - before
}

/// Stacks of calls of lines, with samples of all groups of windows, in so many columns.
fn profile(stacks: impl Iterator<Item = Vec<u32>>, columns: usize) -> Profile {
    let types = (0..columns).map(|column| ValueType::new(&format!("c{column}"), ["count", "bytes"][column % 2]));
    let sample_types = types.collect();
    let header = Header { sample_types, comments: vec!["greatest_weight=10".into()], ..Header::default() };
    let mut builder = Builder::new();
    let function = builder.function(Function { name: 0, system_name: 0, file: 0, start_line: 1 });
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    for lines in stacks {
        let stack = lines.into_iter().fold(EMPTY_STACK, |stack, line| {
            let lines = Arc::new([Line { function, line: line.into(), column: 0 }]);
            let location = builder.location(&Location { mapping: None, address: 0, folded: false, lines });
            builder.extend(stack, location)
        });
        for group in WindowGroup::all() {
            rows.push(Row::new(stack, 0, builder.scheme(Scheme::of(&header).within(Some(group)))));
            values.extend((0..columns).map(|column| i64::from(column == 0)));
        }
    }
    builder.finish(&header, &rows, &values, &Interrupt::default()).unwrap()
}

const FRAMES: usize = 100_000;

/// A stack of so many calls.
fn deep() -> Profile {
    profile(std::iter::once(vec![1; FRAMES]), 1)
}

const ALL: TreeOptions = TreeOptions { by: By::Method, classes: false, min_fraction: 0.0, max_depth: u32::MAX };

#[test]
fn samples_of_all_groups_of_windows_take_less_than_128_times_their_bytes() {
    let stacks = (0..100).flat_map(|caller| (0..100).map(move |line| vec![caller, line]));
    let gzipped = pprof::write(&profile(stacks, 8), 1, &Interrupt::default()).unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(&*gzipped).read_to_end(&mut bytes).unwrap();
    let held = most(|| pprof::decode(&bytes, 1 << 30, &Interrupt::default()).unwrap()) / bytes.len();
    assert!(held < 128, "{held}");
}

#[test]
fn sums_of_deep_stacks_take_less_than_32_bytes_for_each_frame() {
    let profile = deep();
    let held = most(|| analysis::top(&profile, 0, By::Method, &Interrupt::default()).unwrap()) / FRAMES;
    assert!(held < 32, "{held}");
}

#[test]
fn so_much_is_twice_that_for_frames_that_a_tree_does_not_show() {
    let (profile, options) = (deep(), TreeOptions { max_depth: 1, ..ALL });
    let held = most(|| analysis::tree(&profile, 0, options, &Interrupt::default()).unwrap()) / FRAMES;
    assert!(held < 64, "{held}");
}

#[test]
fn frames_with_the_same_values_share_those_of_groups_of_windows() {
    let profile = deep();
    let held = most(|| analysis::tree(&profile, 0, ALL, &Interrupt::default()).unwrap()) / FRAMES;
    assert!(held < 256, "{held}");
}
