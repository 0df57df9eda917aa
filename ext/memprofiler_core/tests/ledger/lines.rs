//! Lines add up.

use memprofiler_core::ledger::{Account, Figure, Key, Ledger, Line, Source};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::time::Duration;

fn account() -> Account {
    let exact = Figure::exact;
    Account {
        resident: Some(1000),
        files_shared: exact(100),
        files_private: exact(20),
        thread_stacks: exact(30),
        jit_code: exact(0),
        transient_heap: exact(50),
        heap_pages: exact(300),
        object_slots: exact(260),
        allocated: exact(480),
        allocator_free: exact(80),
        profiler: exact(10),
        code: exact(90),
        object_memory: exact(200),
    }
}

fn line(account: &Account, key: Key) -> Line {
    account.clone().lines().into_iter().find(|line| line.key == key).unwrap()
}

fn bytes(account: &Account, key: Key) -> Option<u64> {
    line(account, key).bytes
}

#[test]
fn every_key_has_a_line_in_order() {
    assert_eq!(account().lines().iter().map(|line| line.key).collect::<Vec<_>>(), Key::ALL);
}

#[test]
fn what_nothing_explains_is_a_line() {
    let line = line(&account(), Key::Unexplained);
    assert_eq!((line.bytes, line.source), (Some(20), Source::Remainder));
}

#[test]
fn what_is_allocated_and_has_no_owner_is_the_vm_s() {
    let line = line(&account(), Key::VmMemory);
    assert_eq!((line.bytes, line.source), (Some(100), Source::Remainder));
}

#[test]
fn what_the_pages_of_the_heap_have_beside_objects_is_free() {
    assert_eq!(bytes(&account(), Key::FreeSlots), Some(40));
}

#[test]
fn what_is_unknown_is_a_part_of_the_remainder() {
    let account = Account { code: Figure::unknown("why"), ..account() };
    let code = line(&account, Key::Code);
    assert_eq!((code.bytes, code.source, code.note.as_deref()), (None, Source::Unknown, Some("why")));
    assert_eq!(bytes(&account, Key::VmMemory), Some(190));
}

#[test]
fn objects_whose_number_is_unknown_are_counted_with_free_slots() {
    let account = Account { object_slots: Figure::unknown("why"), ..account() };
    assert_eq!((bytes(&account, Key::ObjectSlots), bytes(&account, Key::FreeSlots)), (None, Some(300)));
}

#[test]
fn without_the_extent_of_the_allocator_nothing_is_said_to_be_unexplained() {
    let account = Account { allocated: Figure::default(), ..account() };
    assert_eq!((bytes(&account, Key::Unexplained), bytes(&account, Key::VmMemory)), (None, Some(120)));
}

#[test]
fn no_line_is_larger_than_what_is_left_and_it_says_so() {
    let account = Account { object_memory: Figure::exact(2000).noting("a note"), ..account() };
    let objects = line(&account, Key::ObjectMemory);
    assert_eq!(objects.bytes, Some(300));
    assert_eq!(objects.note.as_deref(), Some("a note; 2000 bytes were counted, more than are in memory"));
    assert_eq!(bytes(&account, Key::VmMemory), Some(0));
}

#[test]
fn what_is_known_without_the_total_is_said() {
    let account = Account { resident: None, files_shared: Figure::default(), ..account() };
    assert_eq!((bytes(&account, Key::ObjectSlots), bytes(&account, Key::ObjectMemory)), (Some(260), Some(200)));
    assert_eq!((bytes(&account, Key::VmMemory), bytes(&account, Key::Unexplained)), (None, None));
}

#[test]
fn known_lines_add_up_to_the_total() {
    for seed in 0..2000 {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut figure = || match random.random_range(0..6) {
            0 => Figure::unknown("why"),
            1 => Figure::exact(u64::MAX),
            _ => Figure::exact(random.random_range(0..500)),
        };
        let account = Account {
            resident: Some(seed),
            files_shared: figure(),
            files_private: figure(),
            thread_stacks: figure(),
            jit_code: figure(),
            transient_heap: figure(),
            heap_pages: figure(),
            object_slots: figure(),
            allocated: figure(),
            allocator_free: figure(),
            profiler: figure(),
            code: figure(),
            object_memory: figure(),
        };
        let sum: u128 = account.clone().lines().iter().filter_map(|line| line.bytes).map(u128::from).sum();
        assert_eq!(sum, u128::from(seed), "seed {seed}: {:?}", account.lines());
    }
}

#[test]
fn a_ledger_is_json() {
    let estimated = Figure { interval: Some((150, 250)), ..Figure::estimated(200, "from samples") };
    let account = Account { object_memory: estimated, ..account() };
    let ledger = Ledger::new(7, Duration::from_secs(1_795_417_200), account);
    let json = serde_json::to_string(&ledger).unwrap();
    assert!(json.starts_with(r#"{"version":1,"pid":7,"time":"2026-11-23T07:00:00Z","full":false,"#), "{json}");
    let objects =
        r#"{"key":"object_memory","bytes":200,"low":150,"high":250,"source":"estimated","note":"from samples"}"#;
    assert!(json.contains(objects), "{json}");
    assert!(json.contains(r#""rss_bytes":1000"#) && json.contains(r#""unexplained_bytes":20"#), "{json}");
    assert_eq!(serde_json::from_str::<Ledger>(&json).unwrap(), ledger);
}
