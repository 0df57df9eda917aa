//! Whether estimates from samples are unbiased, and intervals as wide as they should be.

use memprofiler_core::readers::Readers;
use memprofiler_core::reservoir::{ClassId, Countdown, Fate, LiveSample, Reservoir};
use memprofiler_core::stack_tree::StackId;
use std::sync::Arc;

/// How many objects each site allocates, and of what size.
const SITES: [(u32, f64); 6] = [(3_000, 40.0), (1_000, 40.0), (200, 4_000.0), (5_000, 80.0), (50, 1e6), (700, 168.0)];

/// A profiled program: it counts down as the extension's hook does.
struct Program {
    reservoir: Reservoir,
    countdown: Arc<Countdown>,
    allocated: u32,
    /// Whether each twentieth sample halves the others before it is taken, as when memory is short.
    short_of_memory: bool,
    taken: u32,
}

impl Program {
    fn new(rate: f64, bound: usize, seed: u64) -> Self {
        let mut reservoir = Reservoir::new(rate, bound, seed);
        reservoir.clear(false);
        let countdown = Arc::clone(reservoir.countdown());
        Self { reservoir, countdown, allocated: 0, short_of_memory: false, taken: 0 }
    }

    fn allocate(&mut self, site: usize) {
        self.allocated += 1;
        let left = self.countdown.left();
        if left > 0 {
            return self.countdown.pass(left);
        }
        let candidate = self.reservoir.select();
        self.taken += 1;
        if self.short_of_memory && self.taken % 20 == 0 {
            self.reservoir.halve(drop);
        }
        let site = ClassId(site as u32);
        let sample = LiveSample::new(u64::from(self.allocated), StackId::EMPTY, site, 0, Readers::NONE);
        assert!(self.reservoir.insert(candidate, sample, drop).is_none());
    }

    fn allocate_many(&mut self, count: u32) {
        (0..count).for_each(|_| self.allocate(0));
    }

    /// All but the last `count` objects die. Returns the estimated number of those that died.
    fn keep_last(&mut self, count: u32) -> f64 {
        let dead = u64::from(self.allocated - count);
        let fate = |sample: &LiveSample, _| if sample.address <= dead { Fate::Dead } else { Fate::Young };
        let mut buried = 0.0;
        self.reservoir.collect(true, fate, |departed| buried += departed.weight);
        buried
    }

    /// The estimated number of live objects.
    fn live(&self) -> f64 {
        self.reservoir.live().samples().iter().map(|sample| self.reservoir.weight(sample)).sum()
    }
}

/// Cycles through the sites and returns for each the estimates of count and bytes and the estimates of their variances:
/// sum of (1 - p) / p^2 times the square of the attribute (Horvitz and Thompson).
fn run(mut program: Program, at_step: impl Fn(u32, &mut Program)) -> Vec<[f64; 4]> {
    let mut remaining = SITES.map(|(count, _)| count);
    while remaining.iter().any(|&count| count > 0) {
        for (site, left) in remaining.iter_mut().enumerate().filter(|(_, left)| **left > 0) {
            *left -= 1;
            program.allocate(site);
            at_step(program.allocated, &mut program);
        }
    }
    let mut estimates = vec![[0.0; 4]; SITES.len()];
    for sample in program.reservoir.live().samples() {
        let site = sample.class.0 as usize;
        let (weight, size) = (program.reservoir.weight(sample), SITES[site].1);
        let variance = weight * weight - weight;
        for (sum, value) in estimates[site].iter_mut().zip([weight, weight * size, variance, variance * size * size]) {
            *sum += value;
        }
    }
    estimates
}

const SEEDS: u64 = 400;

/// Checks count and bytes of every site over many seeds; about a `share` of the objects is sampled in the end.
fn check(rate: f64, bound: usize, share: f64, at_step: impl Fn(u32, &mut Program) + Copy) {
    let (mut covered, mut intervals) = (0, 0);
    let all: Vec<_> = (0..SEEDS).map(|seed| run(Program::new(rate, bound, seed), at_step)).collect();
    for (site, (count, size)) in SITES.into_iter().enumerate() {
        for (attribute, truth) in [(0, f64::from(count)), (1, f64::from(count) * size)] {
            let runs: Vec<_> = all.iter().map(|run| run[site]).collect();
            let mean = runs.iter().map(|run| run[attribute]).sum::<f64>() / SEEDS as f64;
            let spread = runs.iter().map(|run| (run[attribute] - truth).powi(2)).sum::<f64>() / SEEDS as f64;
            assert!(
                (mean - truth).abs() < 6.0 * (spread / SEEDS as f64).sqrt(),
                "site {site}: {mean} instead of {truth}"
            );
            // With too few samples a site's estimate is not normally distributed.
            if f64::from(count) * share < 30.0 {
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
fn estimates_at_a_constant_rate_are_unbiased_and_their_intervals_correct() {
    check(0.1, usize::MAX, 0.1, |_, _| {});
}

#[test]
fn intervals_are_correct_when_the_rate_changes_in_mid_run() {
    check(0.2, usize::MAX, 0.2, |step, program| {
        if step == 3_000 {
            program.reservoir.set_rate(0.05, false);
        }
    });
}

#[test]
fn intervals_are_correct_when_samples_are_halved_in_mid_run() {
    check(0.2, usize::MAX, 0.05, |step, program| {
        if step == 3_000 || step == 6_000 {
            program.reservoir.halve(drop);
        }
    });
}

#[test]
fn intervals_are_correct_at_a_bound() {
    check(1.0, 1_000, 0.06, |_, _| {});
}

/// Few samples each, so that an error in a single one shows.
const BOUNDS: [usize; 3] = [4, 10, 50];

/// Checks that the mean of estimates over many seeds equals the truth, within four standard errors.
fn check_mean(truth: f64, bound: usize, estimate: impl Fn(u64) -> f64) {
    const SEEDS: u64 = 3_000;
    let estimates: Vec<f64> = (0..SEEDS).map(estimate).collect();
    let mean = estimates.iter().sum::<f64>() / SEEDS as f64;
    let variance = estimates.iter().map(|estimate| (estimate - mean).powi(2)).sum::<f64>() / (SEEDS - 1) as f64;
    let error = (variance / SEEDS as f64).sqrt();
    assert!((mean - truth).abs() < 4.0 * error, "bound {bound}: {mean} instead of {truth}, standard error {error}");
}

#[test]
fn a_bound_does_not_bias() {
    for (bound, rate) in BOUNDS.into_iter().flat_map(|bound| [(bound, 1.0), (bound, 0.3)]) {
        check_mean(1_000.0, bound, |seed| {
            let mut program = Program::new(rate, bound, seed);
            program.allocate_many(1_000);
            assert!(program.reservoir.live().len() <= bound);
            program.live()
        });
    }
}

#[test]
fn a_halving_while_a_sample_is_taken_does_not_bias() {
    for bound in BOUNDS {
        check_mean(1_000.0, bound, |seed| {
            let mut program = Program::new(1.0, bound, seed);
            program.short_of_memory = true;
            program.allocate_many(1_000);
            program.live()
        });
    }
}

#[test]
fn changes_of_rate_do_not_bias() {
    check_mean(1_000.0, usize::MAX, |seed| {
        let mut program = Program::new(0.02, usize::MAX, seed);
        for _ in 0..50 {
            program.allocate_many(10);
            program.reservoir.set_rate(0.5, false);
            program.allocate_many(10);
            program.reservoir.set_rate(0.02, false);
        }
        program.live()
    });
}

#[test]
fn the_recovery_of_the_rate_does_not_bias() {
    for bound in BOUNDS {
        check_mean(1_000.0, bound, |seed| {
            let mut program = Program::new(1.0, bound, seed);
            let (mut dead, mut recoveries) = (0.0, 0);
            for _ in 0..10 {
                program.allocate_many(100);
                dead += program.keep_last(3);
                let before = program.reservoir.rate();
                program.reservoir.recover_rate(true);
                recoveries += u32::from(program.reservoir.rate() > before);
            }
            assert!(recoveries > 0);
            dead + program.live()
        });
    }
}
