//! What glibc's malloc has.

use crate::process::{PAGE, Process};
use memprofiler_core::ledger::{Kind, Places};

/// Pages from one heap of an arena to the next.
const HEAP: u64 = (64 << 20) / PAGE;

fn places() -> Places {
    Places { glibc: true, mapped_blocks: true, ..Places::default() }
}

/// Begins a heap of the arena at `arena`, with as many pages.
fn begin_heap(process: &mut Process, page: u64, arena: u64, pages: u64) {
    process.words.insert(page * PAGE, [arena, 0, pages * PAGE, pages * PAGE]);
}

#[test]
fn what_brk_has_grown_belongs_to_the_main_arena() {
    let mut process = Process::default();
    process.map(Kind::Heap, 0..5);
    assert_eq!(process.survey(places()).arenas, 5 * PAGE);
}

#[test]
fn heaps_of_arenas_are_known_by_how_they_begin() {
    let mut process = Process::default();
    // Before the heap and behind it, the mapping has something else.
    process.map(Kind::Anonymous, HEAP - 3..HEAP + 10);
    begin_heap(&mut process, HEAP, HEAP * PAGE + 0x30, 8);
    // The second heap of the same arena.
    process.map(Kind::Anonymous, 2 * HEAP..2 * HEAP + 4);
    begin_heap(&mut process, 2 * HEAP, HEAP * PAGE + 0x30, 4);
    let survey = process.survey(places());
    assert_eq!((survey.arenas, survey.other), (12 * PAGE, 5 * PAGE));
}

#[test]
fn other_data_is_no_heap() {
    let mut process = Process::default();
    for number in 1..7 {
        process.map(Kind::Anonymous, number * HEAP..number * HEAP + 4);
    }
    let arena = |number: u64| number * HEAP * PAGE + 0x30;
    // An arena in no heap, sizes that are none, an arena at another place, and a heap that says so of another's arena.
    begin_heap(&mut process, HEAP, 0x30, 4);
    begin_heap(&mut process, 2 * HEAP, arena(2), 0);
    process.words.insert(3 * HEAP * PAGE, [arena(3), 0, 4 * PAGE + 1, 4 * PAGE + 1]);
    process.words.insert(4 * HEAP * PAGE, [arena(4), 0, 4 * PAGE, 3 * PAGE]);
    begin_heap(&mut process, 5 * HEAP, arena(5) + 8, 4);
    begin_heap(&mut process, 6 * HEAP, arena(2) + 0x40, 4);
    let survey = process.survey(places());
    assert_eq!((survey.arenas, survey.other), (0, 24 * PAGE));
}

#[test]
fn large_blocks_are_known_by_their_size() {
    let mut process = Process::default();
    process.map(Kind::Anonymous, 0..40);
    process.present.remove(&12);
    process.words.insert(4 * PAGE, [0, (10 * PAGE) | 2, 0, 0]);
    process.words.insert(14 * PAGE, [0, (10 * PAGE) | 2, 0, 0]);
    // By version 2.43.
    process.words.insert(24 * PAGE, [0, (10 * PAGE - 16) | 2, 0, 0]);
    // Larger than what is mapped, not marked as mapped, and smaller than a block with a mapping of its own.
    process.words.insert(34 * PAGE, [0, (20 * PAGE) | 2, 0, 0]);
    process.words.insert(35 * PAGE, [0, 8 * PAGE, 0, 0]);
    process.words.insert(37 * PAGE, [0, PAGE | 2, 0, 0]);
    let survey = process.survey(places());
    assert_eq!((survey.mapped_blocks, survey.other), (29 * PAGE, 10 * PAGE));
}

#[test]
fn what_nobody_has_touched_of_a_stack_in_an_arena_is_known() {
    let mut process = Process::default();
    process.map(Kind::Heap, 0..40);
    process.present.retain(|page| !(10..18).contains(page));
    let vm_stacks = vec![9 * PAGE + 16..20 * PAGE + 16, 100 * PAGE..110 * PAGE];
    let survey = process.survey(Places { vm_stacks, ..places() });
    // Of eleven pages, two are in memory as a whole, and two in part.
    assert_eq!((survey.arenas, survey.untouched_in_arenas), (32 * PAGE, 9 * PAGE));
}

#[test]
fn a_vm_stack_within_a_machine_stack_is_not_the_allocator_s() {
    let mut process = Process::default();
    process.reserve(9..10);
    process.map(Kind::Anonymous, 10..20);
    process.map(Kind::Anonymous, 20..40);
    process.present.retain(|page| page % 10 < 5);
    let vm_stacks = vec![10 * PAGE..20 * PAGE, 20 * PAGE..30 * PAGE];
    let survey = process.survey(Places { vm_stacks, ..places() });
    assert_eq!((survey.untouched_in_arenas, survey.untouched_elsewhere), (0, 5 * PAGE));
}
