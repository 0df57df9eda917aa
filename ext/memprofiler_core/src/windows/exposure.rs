//! What windows covered.

use super::cost::{Costs, probability};
use crate::window_group::WindowGroup;

/// Estimates with which probability a piece of the program's work is in a window, from earlier windows.
///
/// That is the part of the process's CPU time that windows covered, about the duty, or less where the hook slows its
/// own window down: where many objects are allocated, less of the program fits in. The hook's cost per object is the
/// one with which what windows saw adds up to the VM's own count of allocations. So a sum over all sites agrees with
/// that count, and neither dense nor sparse phases are favoured.
///
/// Both figures come from the past, so that a window's samples can be given their final weights at once. Time is the
/// process's CPU time in nanoseconds, with the hook's own. The past fades within a minute.
#[derive(Debug)]
pub struct Exposure {
    duty: f64,
    /// The hook's cost per object in nanoseconds as expected, and as estimated.
    expected_cost: f64,
    cost: f64,
    /// The part of the time that windows cover, as estimated.
    share: f64,
    elapsed: f64,
    allocated: f64,
    /// By group: time covered, and how many objects of the program those stand for that were seen.
    on_time: [f64; WindowGroup::COUNT],
    weighted: [f64; WindowGroup::COUNT],
    costs: Costs,
    /// Segments since the estimates were made.
    fresh: u32,
}

/// A stretch of time in which the hook was on, in one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// The window's group.
    pub group: WindowGroup,
    /// Objects that the hook has seen.
    pub objects: u64,
    /// CPU time of the process in nanoseconds.
    pub on_time: u64,
    /// How long it was meant to be, in nanoseconds.
    pub scheduled: u64,
}

impl Segment {
    /// The part of the time that was before the window's end.
    fn in_time(&self) -> f64 {
        (self.scheduled as f64 / self.on_time.max(1) as f64).min(1.0)
    }
}

/// After how many nanoseconds of CPU time the past counts for 1/e.
const MEMORY: f64 = 30e9;
/// How far the share may well be from the duty, and the cost from the expected one, as multiples of those: the standard
/// deviations of what is expected.
const SHARE_DOUBT: f64 = 0.02;
const COST_DOUBT: f64 = 2.0;
/// The bound of the cost, as a multiple of the expected one.
const COST_BOUND: f64 = 5.0;

impl Exposure {
    /// For windows that are meant to cover the part `duty` of the time, with a hook that is expected to cost
    /// `expected_cost` nanoseconds per object.
    pub fn new(duty: f64, expected_cost: f64) -> Self {
        debug_assert!(duty > 0.0 && duty <= 1.0 && expected_cost >= 0.0);
        Self {
            duty,
            expected_cost,
            cost: expected_cost,
            share: duty,
            elapsed: 0.0,
            allocated: 0.0,
            on_time: [0.0; WindowGroup::COUNT],
            weighted: [0.0; WindowGroup::COUNT],
            costs: Costs::new(),
            fresh: 0,
        }
    }

    /// The part of the time that windows are meant to cover.
    pub fn duty(&self) -> f64 {
        self.duty
    }

    /// The part of the process's CPU time that windows cover, as estimated now.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// The hook's cost in nanoseconds per object, as estimated now.
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// The probability that a piece of the program's work like that in a segment is in a window.
    pub fn probability(&self, segment: &Segment) -> f64 {
        let covered: f64 = self.on_time.iter().sum();
        // A clock that stands still tells no density.
        let density = match segment.on_time {
            0 if covered > 0.0 => self.costs.seen() / covered,
            0 => 0.0,
            time => segment.objects as f64 / time as f64,
        };
        probability(self.share, self.cost, density, segment.in_time())
    }

    /// Adds a segment. Since the end of the last one `elapsed` nanoseconds of CPU time have passed, with the segment's
    /// own, and the VM has counted `allocated` objects.
    pub fn record(&mut self, segment: Segment, elapsed: u64, allocated: u64) {
        let (group, objects) = (segment.group.number(), segment.objects as f64);
        let (on_time, elapsed) = (segment.on_time as f64, elapsed.max(segment.on_time) as f64);
        self.decay((-elapsed / MEMORY).exp());
        // After the window's end the hook's own time says nothing about how likely it was to be on.
        let late = (self.cost * objects * (1.0 - segment.in_time())).min(on_time);
        self.elapsed += elapsed - late;
        self.on_time[group] += on_time - late;
        self.allocated += allocated.max(segment.objects) as f64;
        if segment.objects > 0 {
            self.weighted[group] += objects / self.probability(&segment);
            self.costs.add(objects, objects / on_time.max(1.0), segment.in_time());
        }
        self.fresh += 1;
        if self.fresh as usize >= WindowGroup::COUNT {
            self.fresh = 0;
            self.estimate();
        }
    }

    fn decay(&mut self, keep: f64) {
        for sum in self.on_time.iter_mut().chain(&mut self.weighted) {
            *sum *= keep;
        }
        self.elapsed *= keep;
        self.allocated *= keep;
        self.costs.decay(keep);
    }

    /// Estimates are weighed against what is expected by their precision: with little data they change little.
    fn estimate(&mut self) {
        if self.elapsed > 0.0 {
            let share = self.on_time.iter().sum::<f64>() / self.elapsed;
            let error = variance(&self.on_time) / self.elapsed.powi(2);
            self.share = weighed(self.duty, SHARE_DOUBT * self.duty, share, error).min(1.0);
        }
        let most = COST_BOUND * self.expected_cost;
        let cost = self.costs.solve(self.allocated, self.share, most);
        // The error of the total, as one of the cost.
        let step = 0.01 * most;
        let slope = (self.costs.total(self.share, cost + step) - self.costs.total(self.share, cost)) / step;
        if slope > 0.0 {
            let error = variance(&self.weighted) / (slope * slope);
            self.cost = weighed(self.expected_cost, COST_DOUBT * self.expected_cost, cost, error);
        }
    }
}

/// The mean of what is expected and what was found, weighted by the inverses of their variances.
fn weighed(expected: f64, doubt: f64, found: f64, variance: f64) -> f64 {
    let trust = doubt * doubt / (doubt * doubt + variance);
    if trust.is_finite() { expected + trust * (found - expected) } else { expected }
}

/// The estimated variance of a sum, from its shares by group.
fn variance(shares: &[f64; WindowGroup::COUNT]) -> f64 {
    let count = WindowGroup::COUNT as f64;
    let mean = shares.iter().sum::<f64>() / count;
    count / (count - 1.0) * shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUTY: f64 = 0.1;
    const FRAME: u64 = 10_000_000;

    fn segment(number: usize, objects: u64, on_time: u64) -> Segment {
        Segment { group: WindowGroup::new(number), objects, on_time, scheduled: on_time }
    }

    #[test]
    fn it_is_the_duty_where_little_is_allocated() {
        let exposure = Exposure::new(DUTY, 50.0);
        assert_eq!(exposure.probability(&segment(0, 0, 1_000_000)), DUTY);
        assert!(exposure.probability(&segment(0, 1_000, 1_000_000)) < DUTY);
    }

    #[test]
    fn it_follows_the_time_that_windows_cover() {
        let mut exposure = Exposure::new(DUTY, 50.0);
        (0..1_600).for_each(|number| exposure.record(segment(number, 0, 900_000), FRAME, 0));
        assert!((exposure.share() - 0.09).abs() < 1e-4, "{}", exposure.share());
    }

    #[test]
    fn irregular_windows_are_trusted_less() {
        let mut exposure = Exposure::new(DUTY, 50.0);
        let time = |number: usize| if number % 16 == 0 { 9 * 1_600_000 } else { 0 };
        (0..1_600).for_each(|number| exposure.record(segment(number, 0, time(number)), 16_000_000, 0));
        assert!((exposure.share() - DUTY).abs() < 0.001, "{}", exposure.share());
    }

    #[test]
    fn the_cost_is_that_which_the_vms_count_tells() {
        let (cost, density) = (80, 1_000);
        let mut exposure = Exposure::new(DUTY, 50.0);
        // Objects per millisecond with the hook and without.
        let (with, without) = (density * 1_000_000 / (1_000_000 + cost * density), density);
        for number in 0..1_600 {
            exposure.record(segment(number, with, 1_000_000), FRAME, with + 9 * without);
        }
        assert!((exposure.cost() - 80.0).abs() < 2.0, "{}", exposure.cost());
        let expected = with as f64 / (with + 9 * without) as f64;
        let probability = exposure.probability(&segment(0, with, 1_000_000));
        assert!((probability / expected - 1.0).abs() < 0.002, "{probability} instead of {expected}");
    }

    #[test]
    fn a_little_data_changes_little() {
        let mut exposure = Exposure::new(DUTY, 50.0);
        exposure.record(segment(0, 1_000, 5_000_000), FRAME, 1_000_000);
        (1..16).for_each(|number| exposure.record(segment(number, 0, 0), 0, 0));
        assert!((exposure.share() - DUTY).abs() < 0.001, "{}", exposure.share());
        assert!((40.0..110.0).contains(&exposure.cost()), "{}", exposure.cost());
    }

    #[test]
    fn what_cannot_be_is_no_reason_to_fail() {
        let mut exposure = Exposure::new(1.0, 0.0);
        for number in 0..100 {
            exposure.record(segment(number, u64::MAX, 0), 0, 0);
            exposure.record(segment(number, 0, u64::MAX), 0, u64::MAX);
        }
        let probability = exposure.probability(&segment(0, u64::MAX, 0));
        assert!(probability > 0.0 && probability <= 1.0, "{probability}");
    }
}
