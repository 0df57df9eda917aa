//! What is where.

use crate::process::{PAGE, Process};
use memprofiler_core::ledger::{Kind, Places, Residency, Survey, Usage};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::ops::Range;

fn bytes(pages: Range<u64>) -> Range<u64> {
    pages.start * PAGE..pages.end * PAGE
}

#[test]
fn a_page_of_a_file_is_private_once_it_was_written_to() {
    let mut process = Process::default();
    process.map(Kind::File, 0..8);
    process.of_files.extend(2..8);
    assert_eq!(process.survey(Places::default()).files_private, 2 * PAGE);
}

#[test]
fn of_what_cannot_be_written_to_only_the_part_before_data_was() {
    let mut process = Process::default();
    for pages in [0..1, 1..3, 3..6] {
        process.map(Kind::File, pages).writable = false;
    }
    process.map(Kind::File, 6..10);
    // Not beside it.
    process.map(Kind::File, 20..24).writable = false;
    process.map(Kind::File, 25..26);
    assert_eq!(process.survey(Places::default()).files_private, (3 + 4 + 1) * PAGE);
}

#[test]
fn usage_is_believed_where_it_is_known() {
    let mut process = Process::default();
    let usage = Usage { resident: 5, anonymous: 2, shared: 1, private: 4, swap: 7 };
    process.map(Kind::File, 0..1).usage = Some(usage);
    process.map(Kind::System, 1..2).usage = Some(Usage { resident: 3, ..Usage::default() });
    let survey = process.survey(Places::default());
    assert_eq!((survey.files_private, survey.files_shared), (2, 6));
    assert_eq!(survey.usage, Some(Usage { resident: 8, ..usage }));
    assert_eq!(survey.shared_anonymous, 0);
    process.map(Kind::Heap, 2..3).usage = Some(usage);
    let survey = process.survey(Places::default());
    assert_eq!((survey.shared_anonymous, survey.private_anonymous), (1, 4));
}

#[test]
fn memory_that_can_be_executed_is_compiled_code() {
    let mut process = Process::default();
    process.map(Kind::Anonymous, 0..3).executable = true;
    assert_eq!(process.survey(Places::default()).jit_code, 3 * PAGE);
}

#[test]
fn the_heap_s_pages_are_found_across_mappings() {
    let mut process = Process::default();
    process.map(Kind::Anonymous, 0..10);
    process.map(Kind::Anonymous, 10..20);
    process.present.remove(&9);
    let heap_pages = vec![bytes(2..4), bytes(8..12), bytes(16..20), bytes(40..44)];
    let survey = process.survey(Places { heap_pages, ..Places::default() });
    assert_eq!((survey.heap_pages, survey.other), (9 * PAGE, 10 * PAGE));
}

#[test]
fn a_page_counts_once() {
    let mut process = Process::default();
    process.map(Kind::Anonymous, 0..10);
    let places = Places {
        heap_pages: vec![bytes(0..4)],
        transient_heap: Some(bytes(2..6)),
        of_vm: vec![bytes(5..8), bytes(5..8)],
        of_profiler: vec![bytes(7..9)],
        ..Places::default()
    };
    let survey = process.survey(places);
    assert_eq!((survey.heap_pages, survey.transient_heap), (4 * PAGE, 2 * PAGE));
    assert_eq!((survey.of_vm, survey.of_profiler, survey.other), (2 * PAGE, PAGE, PAGE));
}

#[test]
fn what_follows_a_guard_is_a_stack() {
    let mut process = Process::default();
    process.map(Kind::Stack, 0..2);
    process.reserve(100..101);
    process.map(Kind::Anonymous, 101..105);
    process.map(Kind::Anonymous, 105..107);
    // Too large for a guard.
    process.reserve(200..300);
    process.map(Kind::Anonymous, 300..301);
    let survey = process.survey(Places::default());
    assert_eq!((survey.thread_stacks, survey.other), (6 * PAGE, 3 * PAGE));
}

#[test]
fn a_stack_that_shares_its_mapping_has_only_the_beginning() {
    let mut process = Process::default();
    process.reserve(0..1);
    process.map(Kind::Anonymous, 1..4097);
    assert_eq!(process.survey(Places::default()).thread_stacks, 2 << 20);
}

#[test]
fn without_access_to_the_pages_mappings_count_as_a_whole() {
    let mut process = Process { closed: true, ..Process::default() };
    let usage = |pages: u64| Some(Usage { resident: pages * PAGE, ..Usage::default() });
    process.map(Kind::Heap, 0..10).usage = usage(9);
    process.map(Kind::Anonymous, 10..20).usage = usage(8);
    process.map(Kind::Stack, 20..30).usage = usage(7);
    let survey = process.survey(Places::default());
    assert_eq!((survey.arenas, survey.other, survey.thread_stacks), (9 * PAGE, 8 * PAGE, 7 * PAGE));
    assert!(!survey.complete);
}

#[test]
fn what_is_too_large_to_look_at_is_said_to_be_missing() {
    let mut process = Process::default();
    process.map(Kind::Anonymous, 0..10);
    process.map(Kind::Anonymous, 10..12);
    let survey = Survey::new(&process.mappings, &Places { most: 5 * PAGE, ..Places::default() }, &process);
    assert_eq!((survey.complete, survey.other), (false, 2 * PAGE));
}

#[test]
fn the_parts_add_up_to_what_is_in_memory() {
    for seed in 0..300 {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut process = Process::default();
        let mut at = 0;
        for _ in 0..random.random_range(0..12) {
            at += random.random_range(0..3);
            let pages = at..at + random.random_range(1..40);
            at = pages.end;
            if random.random_ratio(1, 4) {
                process.reserve(pages);
            } else {
                let kinds = [Kind::Anonymous, Kind::Anonymous, Kind::Heap, Kind::Stack];
                process.map(kinds[random.random_range(0..4)], pages).executable = random.random_ratio(1, 8);
            }
        }
        process.present.retain(|_| random.random_ratio(3, 4));
        let mut range = || {
            let start = random.random_range(0..at + 5);
            start * PAGE..random.random_range(start..at + 10) * PAGE
        };
        let (transient_heap, of_vm, vm_stacks) = (Some(range()), vec![range(), range()], vec![range(), range()]);
        let mut heap_pages = vec![range(), range(), range()];
        heap_pages.sort_by_key(|page| page.start);
        let glibc = seed % 2 == 0;
        let places =
            Places { heap_pages, transient_heap, of_vm, vm_stacks, glibc, mapped_blocks: glibc, ..Places::default() };
        let survey = process.survey(places);
        let parts = survey.thread_stacks + survey.jit_code + survey.heap_pages + survey.transient_heap + survey.of_vm;
        assert_eq!(parts + survey.allocated(), process.present.len() as u64 * PAGE, "seed {seed}: {survey:?}");
    }
}

#[test]
fn pages_that_were_not_looked_at_are_like_those_before() {
    let mut residency = Residency::new(0, PAGE);
    let (present, absent) = ((1_u64 << 63).to_ne_bytes(), [0; 8]);
    [present, absent, absent, present].iter().for_each(|word| residency.add(word));
    residency.repeat_last(2);
    assert_eq!((residency.len(), residency.resident()), (6, 3 * PAGE));
    assert_eq!(residency.take(&bytes(4..6)), PAGE);
}

#[test]
fn a_stack_is_what_is_in_memory_around_its_end() {
    let mut process = Process::default();
    process.map(Kind::Anonymous, 0..20);
    [3, 9, 17].iter().for_each(|page| {
        process.present.remove(page);
    });
    // Nothing is in memory at the second.
    let stack_pointers = vec![5 * PAGE + 8, 9 * PAGE, 100 * PAGE];
    let survey = process.survey(Places { stack_pointers, ..Places::default() });
    assert_eq!((survey.thread_stacks, survey.other), (5 * PAGE, 12 * PAGE));
}
