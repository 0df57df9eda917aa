//! Long work that is interrupted and restarted.

use crate::maker::{maker, recursive};
use crate::uninterrupted;
use memprofiler_core::analysis::{self, By, TreeOptions};
use memprofiler_core::interrupt::{Interrupt, Interrupted};
use memprofiler_core::pprof::{self, message};
use memprofiler_core::profile::{self, Merger, Profile};
use prost::Message;
use std::time::Duration;

const OPTIONS: TreeOptions = TreeOptions { by: By::Method, classes: true, min_fraction: 0.0, max_depth: u32::MAX };

type Operation = (&'static str, fn(&Profile, &Interrupt) -> bool);

/// Long operations; each returns whether it finished.
const OPERATIONS: [Operation; 16] = [
    ("decode", |_, interrupt| {
        let bytes = uninterrupted::write(&recursive(), 1).unwrap();
        pprof::decode(&bytes, u64::MAX, interrupt).is_ok()
    }),
    ("decode plain", |_, interrupt| pprof::decode(&maker().0.encode_to_vec(), u64::MAX, interrupt).is_ok()),
    ("write", |profile, interrupt| pprof::write(profile, 1, interrupt).is_ok()),
    ("merge", |profile, interrupt| profile::merge(profile, &[profile], interrupt).is_ok()),
    ("diff", |profile, interrupt| profile::diff(profile, profile, interrupt).is_ok()),
    ("equal", |profile, interrupt| profile::equal(profile, profile, interrupt).is_ok()),
    ("total", |profile, interrupt| analysis::Estimator::new(profile, 0).total(interrupt).is_ok()),
    ("top", |profile, interrupt| analysis::top(profile, 0, By::Line, interrupt).is_ok()),
    ("top by class", |profile, interrupt| analysis::top(profile, 0, By::Class, interrupt).is_ok()),
    ("tree", |profile, interrupt| analysis::tree(profile, 0, OPTIONS, interrupt).is_ok()),
    ("folded", |profile, interrupt| analysis::folded(profile, 0, interrupt).is_ok()),
    ("speedscope", |profile, interrupt| analysis::speedscope(profile, "", "", interrupt).is_ok()),
    ("flamegraph", |profile, interrupt| analysis::flamegraph(&[profile], By::Method, 0.0, interrupt).is_ok()),
    ("filter_frames", |profile, interrupt| profile.filter_frames(false, |_| true, interrupt).is_ok()),
    ("filter_labels", |profile, interrupt| profile.filter_labels(|_| true, interrupt).is_ok()),
    ("without_libraries", |profile, interrupt| profile.without_libraries(interrupt).is_ok()),
];

#[test]
fn every_operation_stops_if_and_only_if_it_is_interrupted() {
    for (name, operation) in OPERATIONS {
        let interrupt = Interrupt::default();
        assert!(operation(&recursive(), &interrupt) && !interrupt.was_noticed(), "{name}");
        interrupt.strike();
        assert!(!operation(&recursive(), &interrupt) && interrupt.was_noticed(), "{name}");
    }
}

/// A profile with this many samples, each with its own stack.
fn large(samples: i64) -> Profile {
    let mut maker = maker().sample(&["a /a.rb:1 1"], None, &[1, 1]).sample(&["b /a.rb:2 1"], None, &[1, 1]);
    let stack = |number: i64| (0..20).map(|bit| (number >> bit & 1) as u64 + 1).collect();
    let sample = |number| message::Sample { location_id: stack(number), value: vec![number, 1], ..Default::default() };
    maker.0.sample = (1..=samples).map(sample).collect();
    maker.profile()
}

/// Calls `work` with growing patience until it finishes; returns how often it did not.
fn persist<T>(mut work: impl FnMut(&Interrupt) -> Result<T, Interrupted>) -> (T, usize) {
    let mut patience = Duration::from_micros(100);
    for attempts in 0.. {
        let interrupt = Interrupt::after(patience);
        interrupt.strike();
        if let Ok(result) = work(&interrupt) {
            return (result, attempts);
        }
        patience = patience * 5 / 4;
    }
    unreachable!()
}

#[test]
fn a_sum_resumes_where_it_was_interrupted() {
    let profile = large(20_000);
    let expected = uninterrupted::merge(&profile, &[&profile, &profile]).unwrap();
    let (mut merger, _) = persist(|interrupt| Merger::new(&profile, interrupt));
    for _ in 0..2 {
        let add = |interrupt: &Interrupt| merger.add(&profile, interrupt).map_err(|_| Interrupted);
        let ((), attempts) = persist(add);
        assert!(attempts > 2, "interrupted {attempts} times");
    }
    let (sum, attempts) = persist(|interrupt| merger.finish(interrupt));
    assert!(attempts > 2, "interrupted {attempts} times");
    assert!(sum == expected);
}
