//! The hook's cost, from the VM's own count of allocations.

use super::cost::Costs;
use crate::window_group::{WindowGroup, variance};

/// What windows have seen, and what the VM has counted, over some time.
#[derive(Debug)]
pub(super) struct Calibration {
    /// After how many nanoseconds the past counts for 1/e, and for how many this one has seen windows.
    memory: f64,
    age: f64,
    allocated: f64,
    /// By group: how many objects of the program those stand for that were seen.
    weighted: [f64; WindowGroup::COUNT],
    costs: Costs,
}

/// What a window has seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub group: WindowGroup,
    pub objects: f64,
    /// Objects per nanosecond of the window's time.
    pub density: f64,
    /// The part of that time that was before the window's end.
    pub in_time: f64,
    /// The part of the program's time that windows covered.
    pub share: f64,
    /// The part of that time in which samples were taken.
    pub sampling: f64,
    /// The part of that time by which the window was prolonged, for what the hook was taken to need.
    pub prolonged: f64,
}

/// Which part of its age the memory is at most: the first windows, which were much too long or too short if the cost was
/// not what was expected, soon count for nothing.
const YOUTH: f64 = 0.5;

impl Calibration {
    pub fn new(memory: f64) -> Self {
        Self { memory, age: 0.0, allocated: 0.0, weighted: [0.0; WindowGroup::COUNT], costs: Costs::new() }
    }

    /// Adds a window, after `elapsed` nanoseconds in which the VM counted `allocated` objects.
    pub fn add(&mut self, seen: Seen, elapsed: f64, allocated: f64) {
        self.age += elapsed;
        // A clock that stands still is no reason to forget.
        let keep = (-elapsed / self.memory.min(YOUTH * self.age).max(f64::MIN_POSITIVE)).exp();
        self.weighted.iter_mut().for_each(|sum| *sum *= keep);
        self.costs.decay(keep);
        self.allocated = self.allocated * keep + allocated;
        if seen.objects > 0.0 {
            self.weighted[seen.group.number()] += seen.objects / seen.share;
            self.costs.add(seen);
        }
    }

    /// The cost in nanoseconds per object, at most `most`, with which what was seen adds up to what was allocated; if
    /// none does, the least of those with which it comes nearest. It is weighed against the one expected by its
    /// precision, the variance among the groups: with little data it changes little. `doubt` times the expected cost is
    /// how far from it the cost may well be.
    pub fn cost(&self, expected: f64, doubt: f64, most: f64) -> f64 {
        // Above some cost the total does not grow any more.
        let found = self.costs.solve(self.allocated.min(self.costs.total(most)), most);
        // The total has the relative error of what was seen. As one of the cost: it is steeper below what was found than
        // above.
        let relative = variance(&self.weighted).sqrt() / self.weighted.iter().sum::<f64>();
        let step = 0.01 * most;
        let below = (found - step).max(0.0);
        let slope = (self.costs.total(below + step) - self.costs.total(below)) / step;
        let error = (relative * self.costs.total(found) / slope).powi(2);
        let doubt = (doubt * expected).powi(2);
        let trust = doubt / (doubt + error);
        // Without data there is no slope.
        if slope > 0.0 && trust.is_finite() { expected + trust * (found - expected) } else { expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: f64 = 0.03;

    /// Windows whose hook takes `cost` nanoseconds per object of a program that allocates one per 100 ns, and which are
    /// prolonged by `assumed`.
    fn calibration(cost: f64, assumed: f64) -> Calibration {
        let mut calibration = Calibration::new(1e12);
        for number in 0..320 {
            let time = 100.0 + cost;
            let prolonged = assumed / time;
            let objects = SHARE * 30e6 / (1.0 - prolonged) / time;
            let seen = Seen {
                group: WindowGroup::new(number),
                objects,
                density: 1.0 / time,
                in_time: 1.0,
                share: SHARE,
                sampling: 0.0,
                prolonged,
            };
            calibration.add(seen, 30e6, objects + (1.0 - SHARE) * 30e6 / 100.0);
        }
        calibration
    }

    #[test]
    fn a_cost_far_above_the_expected_one_is_found() {
        for cost in [20.0, 80.0, 200.0] {
            let found = calibration(cost, 80.0_f64.min(cost)).cost(80.0, 2.0, 3200.0);
            assert!((found / cost - 1.0).abs() < 0.1, "{found} where it is {cost}");
        }
    }

    #[test]
    fn a_hook_that_takes_most_of_its_windows_costs_the_most_that_is_told_apart() {
        // 90 % of them, of which 80 % are known as such.
        let found = calibration(900.0, 80.0).cost(80.0, 2.0, 3200.0);
        assert!((found / 800.0 - 1.0).abs() < 0.1, "{found}");
    }
}
