//! The hook's cost, from the VM's own count of allocations.

use super::cost::Costs;
use crate::window_group::{WindowGroup, variance};

/// What windows have seen, and what the VM has counted, over some time.
#[derive(Debug)]
pub(super) struct Calibration {
    /// After how many nanoseconds the past counts for 1/e.
    memory: f64,
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
    /// The hook's cost by which the window was prolonged, in nanoseconds per object.
    pub cost: f64,
}

impl Calibration {
    pub fn new(memory: f64) -> Self {
        Self { memory, allocated: 0.0, weighted: [0.0; WindowGroup::COUNT], costs: Costs::new() }
    }

    /// Adds a window, after `elapsed` nanoseconds in which the VM counted `allocated` objects.
    pub fn add(&mut self, seen: Seen, elapsed: f64, allocated: f64) {
        let keep = (-elapsed / self.memory).exp();
        self.weighted.iter_mut().for_each(|sum| *sum *= keep);
        self.costs.decay(keep);
        self.allocated = self.allocated * keep + allocated;
        if seen.objects > 0.0 {
            self.weighted[seen.group.number()] += seen.objects / seen.share;
            self.costs.add(seen);
        }
    }

    /// The cost in nanoseconds per object, at most `most`, with which what was seen adds up to what was allocated. It
    /// is weighed against the one expected by its precision, the variance among the groups: with little data it changes
    /// little. `doubt` times the expected cost is how far from it the cost may well be.
    pub fn cost(&self, expected: f64, doubt: f64, most: f64) -> f64 {
        let found = self.costs.solve(self.allocated, most);
        // The error of the total, as one of the cost.
        let step = 0.01 * most;
        let slope = (self.costs.total(found + step) - self.costs.total(found)) / step;
        let error = variance(&self.weighted) / (slope * slope);
        let doubt = (doubt * expected).powi(2);
        let trust = doubt / (doubt + error);
        // Without data there is no slope.
        if slope > 0.0 && trust.is_finite() { expected + trust * (found - expected) } else { expected }
    }
}
