//! Compares the live set with a map, for sets by address and by position.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use memprofiler_core::readers::Readers;
use memprofiler_core::reservoir::{ClassId, Fate, LiveSet, LiveSample};
use memprofiler_core::stack_tree::StackId;
use std::collections::BTreeMap;

#[derive(Debug, Arbitrary)]
enum Step {
    Insert(u16),
    /// Many at once, to make tables grow.
    InsertRange(u16, u8),
    Remove(u16),
    RemoveAt(u16),
    /// A collection that finds addresses with these low bits dead.
    Collect {
        major: bool,
        dead: u8,
        old: u8,
    },
    /// A compaction that moves every second object.
    Relocate,
    Shrink,
    Drain,
}

fn sample(address: u64, born: u32) -> LiveSample {
    LiveSample::new(address, StackId::EMPTY, ClassId(0), born, Readers::only(0))
}

/// Address to birth, and whether the sample was last found old.
type Model = BTreeMap<u64, (u32, bool)>;

fn check(set: &LiveSet, model: &Model) {
    let mut samples: Vec<_> = set.samples().iter().map(|sample| (sample.address, sample.born)).collect();
    samples.sort_unstable();
    assert_eq!(samples, model.iter().map(|(&address, &(born, _))| (address, born)).collect::<Vec<_>>());
}

fn run(steps: &[Step], mut set: LiveSet, by_address: bool) {
    let mut model = Model::new();
    for (born, step) in (0_u32..).zip(steps) {
        match *step {
            Step::Insert(address) => insert(&mut set, &mut model, address, born, by_address),
            Step::InsertRange(address, count) => (0..u16::from(count)).for_each(|offset| {
                insert(&mut set, &mut model, address.wrapping_add(offset), born, by_address);
            }),
            Step::Remove(address) => {
                let address = u64::from(address) * 40;
                assert!(!by_address || set.may_have(address) || !model.contains_key(&address));
                let removed = set.remove(address).map(|sample| sample.born);
                if by_address {
                    assert_eq!(removed, model.remove(&address).map(|(born, _)| born));
                } else {
                    assert_eq!(removed, None);
                }
            }
            Step::RemoveAt(position) => {
                let expected = set.samples().get(usize::from(position)).map(|sample| sample.address);
                let removed = set.remove_at(position.into()).map(|sample| sample.address);
                assert_eq!(removed, expected);
                removed.and_then(|address| model.remove(&address));
            }
            Step::Collect { major, dead, old } if !by_address => collect(&mut set, &mut model, major, dead, old),
            Step::Collect { .. } => {}
            Step::Relocate => {
                // Two spaces: an object in one may move to the same place in the other if that is free.
                let taken: Vec<u64> = model.keys().copied().collect();
                let moved = |address: u64| {
                    let target = address ^ (1 << 40);
                    if (address / 40) % 2 == 0 && taken.binary_search(&target).is_err() { target } else { address }
                };
                set.relocate(moved);
                model = model.into_iter().map(|(address, value)| (moved(address), value)).collect();
            }
            Step::Shrink => set.shrink(),
            Step::Drain => {
                assert_eq!(set.drain().len(), model.len());
                model.clear();
            }
        }
        assert_eq!(set.len(), model.len());
    }
    check(&set, &model);
}

fn insert(set: &mut LiveSet, model: &mut Model, address: u16, born: u32, by_address: bool) {
    let address = u64::from(address) * 40;
    // A set by position never gets the same address twice.
    if !by_address && model.contains_key(&address) {
        return;
    }
    let replaced = set.insert(sample(address, born)).map(|sample| sample.born);
    assert_eq!(replaced, model.insert(address, (born, false)).map(|(born, _)| born));
}

fn collect(set: &mut LiveSet, model: &mut Model, major: bool, dead: u8, old: u8) {
    let is = |address: u64, bits: u8| bits != 0 && (address / 40) as u8 & bits == bits;
    let mut asked = Vec::new();
    let mut buried = Vec::new();
    let fate = |sample: &LiveSample, known_old: bool| {
        asked.push(sample.address);
        assert_eq!(known_old, model[&sample.address].1);
        if is(sample.address, dead) {
            Fate::Dead
        } else if !known_old && is(sample.address, old) {
            Fate::Old
        } else {
            Fate::Young
        }
    };
    set.collect(major, fate, |sample| buried.push(sample.address));
    let expected: Vec<u64> =
        model.iter().filter(|&(_, &(_, was_old))| major || !was_old).map(|(&address, _)| address).collect();
    asked.sort_unstable();
    assert_eq!(asked, expected);
    buried.sort_unstable();
    assert_eq!(buried, expected.iter().copied().filter(|&address| is(address, dead)).collect::<Vec<_>>());
    buried.iter().for_each(|address| {
        model.remove(address);
    });
    model.iter_mut().for_each(|(&address, (_, was_old))| *was_old |= is(address, old));
}

fuzz_target!(|steps: Vec<Step>| {
    run(&steps, LiveSet::by_address(), true);
    run(&steps, LiveSet::by_position(), false);
});
