//! How much the hook slows down its own windows.

use super::calibration::Seen;

/// Objects by how densely they were allocated while the hook was on, to find the hook's cost per object.
///
/// Let the hook take the part x of a window's time. The rest, 1 - x, held the program's work; without the hook the
/// window would have held more, by x / (1 - x) times as much. Outside windows, for the part 1 - d of the time, work is
/// done at full speed. So what was seen stands for `1 + (1 - d) x / (1 - x)` times as much as it seems to, and a piece
/// of work is in a window with the probability d divided by that.
///
/// But a hook that stays on after its window's end, for lack of a safe point, costs no coverage then: whether that work
/// is seen was decided at its beginning. So only the part of x counts that was in time.
#[derive(Debug)]
pub(super) struct Costs {
    /// How many objects those stand for that were seen, if the hook cost nothing.
    seen: f64,
    /// By the binary logarithm of the density.
    bins: [Bin; BINS],
}

/// Sums over on-times of similar density.
#[derive(Debug, Default, Clone, Copy)]
struct Bin {
    /// For objects in time: how many there are outside windows for each of them, if the hook cost nothing.
    objects: f64,
    /// The sum of those times the density.
    moment: f64,
}

/// Two bins per power of two, from 2^-20 objects per nanosecond (a thousand per millisecond) upwards.
const BINS: usize = 36;
const BINS_PER_OCTAVE: f64 = 2.0;
const LEAST_EXPONENT: f64 = -20.0;

/// No hook takes more than this part of its window.
const MOST: f64 = 0.7;

/// How much more work than seen a window would have held without the hook, as a multiple: x / (1 - x). The hook costs
/// `cost` nanoseconds per object; the density is in objects per nanosecond.
fn displaced(cost: f64, density: f64) -> f64 {
    let part = (cost * density).min(MOST);
    part / (1.0 - part)
}

/// The probability that a piece of the program's work like that in a window was in a window, if windows cover the part
/// `share` of the time, and the part `in_time` of this one's was before its end.
pub(super) fn probability(share: f64, cost: f64, density: f64, in_time: f64) -> f64 {
    share / (1.0 + (1.0 - share) * in_time * displaced(cost, density))
}

impl Costs {
    pub fn new() -> Self {
        Self { seen: 0.0, bins: [Bin::default(); BINS] }
    }

    /// Forgets all but the part `keep`.
    pub fn decay(&mut self, keep: f64) {
        self.seen *= keep;
        for bin in &mut self.bins {
            bin.objects *= keep;
            bin.moment *= keep;
        }
    }

    /// Adds what a window has seen.
    pub fn add(&mut self, Seen { objects, density, in_time, share, .. }: Seen) {
        let position = ((density.log2() - LEAST_EXPONENT) * BINS_PER_OCTAVE).clamp(0.0, (BINS - 1) as f64);
        let bin = &mut self.bins[position as usize];
        let outside = objects * in_time * (1.0 - share) / share;
        self.seen += objects / share;
        bin.objects += outside;
        bin.moment += outside * density;
    }

    /// How many objects the program has allocated, by what was seen, if the hook costs `cost`.
    pub fn total(&self, cost: f64) -> f64 {
        let bins = self.bins.iter().filter(|bin| bin.objects > 0.0);
        self.seen + bins.map(|bin| bin.objects * displaced(cost, bin.moment / bin.objects)).sum::<f64>()
    }

    /// The cost, at most `most`, with which [`total`](Self::total) is `allocated`.
    pub fn solve(&self, allocated: f64, most: f64) -> f64 {
        let (mut low, mut high) = (0.0, most);
        for _ in 0..20 {
            let middle = (low + high) / 2.0;
            if self.total(middle) < allocated { low = middle } else { high = middle }
        }
        (low + high) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window_group::WindowGroup;

    fn seen(objects: f64, density: f64) -> Seen {
        Seen { group: WindowGroup::new(0), objects, density, in_time: 1.0, share: 0.1, probability: 0.1 }
    }

    #[test]
    fn the_cost_is_found_from_a_mix_of_densities() {
        let mut costs = Costs::new();
        // A second each, with the hook on for a tenth of the time.
        let (cost, share, mut allocated) = (40.0, 0.1, 0.0);
        for per_nanosecond in [1e-5, 1e-3, 1e-2] {
            let density = per_nanosecond / (1.0 + cost * per_nanosecond);
            allocated += 1e9 * ((1.0 - share) * per_nanosecond + share * density);
            costs.add(seen(share * 1e9 * density, density));
        }
        let found = costs.solve(allocated, 100.0);
        assert!((found - cost).abs() < 0.1, "{found}");
        assert!(costs.total(0.0) < 0.9 * allocated);
    }

    #[test]
    fn a_cost_stays_within_its_bounds() {
        let mut costs = Costs::new();
        costs.add(seen(1e6, 0.01));
        assert!(costs.solve(0.0, 60.0) < 0.1);
        assert!(costs.solve(1e12, 60.0) > 59.9);
    }

    #[test]
    fn no_density_is_too_high_or_too_low() {
        let mut costs = Costs::new();
        for density in [0.0, 1e-30, 1e30, f64::INFINITY] {
            costs.add(seen(1.0, density));
            assert!((0.03..=0.1).contains(&probability(0.1, 20.0, density, 1.0)));
        }
    }

    #[test]
    fn time_after_the_end_costs_nothing() {
        assert_eq!(probability(0.1, 20.0, 0.01, 0.0), 0.1);
        assert!(probability(0.1, 20.0, 0.01, 1.0) < 0.09);
    }
}
