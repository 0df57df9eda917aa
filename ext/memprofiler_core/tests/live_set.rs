//! Compares the live set with a map.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a failure")]

use memprofiler_core::readers::Readers;
use memprofiler_core::reservoir::{ClassId, Fate, LiveSample, LiveSet};
use memprofiler_core::stack_tree::StackId;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::HashMap;

fn sample(address: u64, born: u32) -> LiveSample {
    LiveSample::new(address, StackId::EMPTY, ClassId(0), born, Readers::only(0))
}

#[test]
fn agrees_with_a_map_under_random_operations() {
    let mut random = SmallRng::seed_from_u64(3);
    let (mut set, mut model) = (LiveSet::by_address(), HashMap::new());
    for step in 0..200_000u32 {
        // Few enough addresses for inserts, hits and misses all to be frequent.
        let address = 0x7f00_0000_0000 + random.random_range(0..6_000u64) * 40;
        if random.random::<bool>() {
            assert_eq!(set.remove(address).map(|s| s.born), model.remove(&address));
        } else if let std::collections::hash_map::Entry::Vacant(free) = model.entry(address) {
            free.insert(step);
            assert!(set.insert(sample(address, step)).is_none());
        }
        assert_eq!(set.len(), model.len());
        assert!(set.may_have(address) || !model.contains_key(&address));
    }
    for (&address, &born) in &model {
        assert_eq!(set.remove(address).map(|s| s.born), Some(born));
    }
    assert!(set.is_empty());
}

#[test]
fn samples_are_found_at_their_new_addresses_after_a_move() {
    let mut set = LiveSet::by_address();
    for i in 0..100 {
        set.insert(sample(i * 40, i as u32));
    }
    set.relocate(|address| if address % 80 == 0 { address + 1_000_000 } else { address });
    assert!(set.remove(80).is_none());
    assert_eq!(set.remove(40).map(|s| s.born), Some(1));
    assert_eq!(set.remove(1_000_080).map(|s| s.born), Some(2));
}

#[test]
fn walking_downwards_visits_every_sample_in_spite_of_removals() {
    let mut set = LiveSet::by_address();
    for i in 0..1000 {
        set.insert(sample(i * 40, i as u32));
    }
    let (mut seen, mut position) = (vec![0; 1000], 1000);
    while position > 0 {
        position -= 1;
        let Some(sample) = set.sample_mut(position) else { continue };
        if !sample.unreported.is_empty() {
            sample.unreported = Readers::NONE;
            seen[sample.born as usize] += 1;
        }
        // At every third step something dies, on either side of the walk.
        if position % 3 == 0 {
            set.remove((position as u64 * 7919 % 1000) * 40);
        }
    }
    for sample in set.samples() {
        assert_eq!(seen[sample.born as usize], 1);
    }
}

#[test]
fn an_address_that_is_allocated_again_returns_the_sample_that_died() {
    let mut set = LiveSet::by_address();
    set.insert(sample(40, 1));
    assert_eq!(set.insert(sample(40, 2)).map(|s| s.born), Some(1));
    assert_eq!((set.len(), set.remove(40).map(|s| s.born)), (1, Some(2)));
}

#[test]
fn collections_find_the_dead_and_ask_about_the_old_only_when_major() {
    let mut random = SmallRng::seed_from_u64(5);
    let mut set = LiveSet::by_position();
    let (mut alive, mut next) = (HashMap::<u64, bool>::new(), 0u64);
    for round in 0..300 {
        for _ in 0..random.random_range(0..50) {
            set.insert(sample(next, 0));
            alive.insert(next, false);
            next += 1;
        }
        let major = round % 5 == 0;
        let mut dead = Vec::new();
        for (&address, old) in &mut alive {
            if (major || !*old) && random.random_range(0..4) == 0 {
                dead.push(address);
            } else if random.random_range(0..3) == 0 {
                *old = true;
            }
        }
        let mut buried = Vec::new();
        set.collect(
            major,
            |sample, known_old| match (dead.contains(&sample.address), alive[&sample.address]) {
                (true, _) => Fate::Dead,
                (_, true) if !known_old => Fate::Old,
                _ => Fate::Young,
            },
            |sample| buried.push(sample.address),
        );
        buried.sort_unstable();
        dead.sort_unstable();
        assert_eq!(buried, dead);
        alive.retain(|address, _| !dead.contains(address));
        let mut left: Vec<_> = set.samples().iter().map(|sample| sample.address).collect();
        left.sort_unstable();
        let mut expected: Vec<_> = alive.keys().copied().collect();
        expected.sort_unstable();
        assert_eq!(left, expected);
    }
}

/// A set by position with samples 0 to 39, of which 0 to 19 are old.
fn with_old_samples() -> LiveSet {
    let mut set = LiveSet::by_position();
    (0..40).for_each(|address| assert!(set.insert(sample(address, 0)).is_none()));
    set.collect(true, |sample, _| if sample.address < 20 { Fate::Old } else { Fate::Young }, |_| ());
    set
}

#[test]
fn the_death_of_an_old_sample_is_no_reordering() {
    let mut set = with_old_samples();
    let before = set.reorderings();
    set.collect(true, |sample, _| if sample.address == 7 { Fate::Dead } else { Fate::Young }, |_| ());
    assert_eq!(set.reorderings(), before);
}

#[test]
fn no_sample_moves_up_when_an_old_one_dies() {
    for dead in 0..20 {
        let mut set = with_old_samples();
        let before: Vec<_> = set.samples().iter().map(|sample| sample.address).collect();
        set.collect(true, |sample, _| if sample.address == dead { Fate::Dead } else { Fate::Young }, |_| ());
        let is_lower = |(now, sample): (usize, &LiveSample)| before[..now].iter().all(|&other| other != sample.address);
        assert!(set.samples().iter().enumerate().all(is_lower));
    }
}

#[test]
fn memory_per_sample_is_bounded() {
    let mut set = LiveSet::by_address();
    for i in 0..300_000u64 {
        set.insert(sample(i * 40, 0));
        assert!(i < 10_000 || set.bytes() <= 48 * set.len(), "{} at {i}", set.bytes());
    }
}
