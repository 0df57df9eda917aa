//! Whether estimates from samples are unbiased, and intervals as wide as they should be.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a failure")]

use memprofiler_core::live_set::RateId;
use memprofiler_core::rates::RateTable;
use memprofiler_core::sampler::Sampler;

/// What one site allocates: how many objects, of what size each.
const SITES: [(u32, f64); 6] = [(3_000, 40.0), (1_000, 40.0), (200, 4_000.0), (5_000, 80.0), (50, 1e6), (700, 168.0)];

/// Samples a program that takes the sites in turn, and returns per site the estimates of count and bytes and the
/// estimates of their variances: sum of (1 - p) / p^2 times the square of the attribute (Horvitz and Thompson).
fn run(
    rate: f64,
    seed: u64,
    mut at_step: impl FnMut(u32, &mut Sampler, &mut RateTable, &mut Vec<Taken>),
) -> Vec<[f64; 4]> {
    let (mut sampler, mut rates, mut taken) = (Sampler::new(rate, seed), RateTable::default(), Vec::new());
    let mut remaining = SITES.map(|(count, _)| count);
    let (mut countdown, mut step) = (sampler.next_gap(), 0);
    while remaining.iter().any(|&count| count > 0) {
        for (site, left) in remaining.iter_mut().enumerate().filter(|(_, left)| **left > 0) {
            *left -= 1;
            step += 1;
            countdown -= 1;
            if countdown == 0 {
                taken.push(Taken { site, rate: rates.id(sampler.rate()).unwrap() });
                countdown = sampler.next_gap();
            }
            let before = sampler.rate();
            at_step(step, &mut sampler, &mut rates, &mut taken);
            if sampler.rate() != before {
                countdown = sampler.next_gap();
            }
        }
    }
    let mut estimates = vec![[0.0; 4]; SITES.len()];
    for Taken { site, rate } in taken {
        let (weight, size) = (rates.weight(rate), SITES[site].1);
        let variance = weight * weight - weight;
        for (sum, value) in estimates[site].iter_mut().zip([weight, weight * size, variance, variance * size * size]) {
            *sum += value;
        }
    }
    estimates
}

struct Taken {
    site: usize,
    rate: RateId,
}

const SEEDS: u64 = 400;

/// Checks count and bytes of every site over many seeds.
fn check(rate: f64, at_step: impl Fn(u32, &mut Sampler, &mut RateTable, &mut Vec<Taken>) + Copy) {
    let (mut covered, mut intervals) = (0, 0);
    let all: Vec<_> = (0..SEEDS).map(|seed| run(rate, seed, at_step)).collect();
    for (site, (count, size)) in SITES.into_iter().enumerate() {
        for (attribute, truth) in [(0, f64::from(count)), (1, f64::from(count) * size)] {
            let runs: Vec<_> = all.iter().map(|run| run[site]).collect();
            let mean = runs.iter().map(|run| run[attribute]).sum::<f64>() / SEEDS as f64;
            let spread = runs.iter().map(|run| (run[attribute] - truth).powi(2)).sum::<f64>() / SEEDS as f64;
            assert!(
                (mean - truth).abs() < 6.0 * (spread / SEEDS as f64).sqrt(),
                "site {site}: {mean} instead of {truth}"
            );
            // Sites with too few samples have no normal distribution.
            if f64::from(count) * rate < 30.0 {
                continue;
            }
            let squares = runs.iter().map(|run| (run[attribute] - truth).powi(2) / run[attribute + 2]).sum::<f64>();
            assert!(
                (0.75..1.35).contains(&(squares / SEEDS as f64)),
                "site {site}: mean z^2 {}",
                squares / SEEDS as f64
            );
            intervals += runs.len();
            covered +=
                runs.iter().filter(|run| (run[attribute] - truth).abs() <= 1.96 * run[attribute + 2].sqrt()).count();
        }
    }
    let coverage = covered as f64 / intervals as f64;
    assert!((0.92..0.97).contains(&coverage), "coverage {coverage}");
}

#[test]
fn estimates_at_a_constant_rate_are_unbiased_and_their_intervals_true() {
    check(0.1, |_, _, _, _| {});
}

#[test]
fn a_change_of_rate_in_mid_run_does_not_bias() {
    check(0.2, |step, sampler, _, _| {
        if step == 3_000 {
            sampler.set_rate(0.05);
        }
    });
}

#[test]
fn halving_in_mid_run_does_not_bias() {
    check(0.2, |step, sampler, rates, taken| {
        if step == 3_000 || step == 6_000 {
            taken.retain(|_| sampler.coin());
            rates.halve();
            sampler.set_rate(sampler.rate() / 2.0);
        }
    });
}
