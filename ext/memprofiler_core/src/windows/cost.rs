//! What the hook costs per object.

use super::calibration::Seen;

/// Objects by how densely they were allocated while the hook was on, to find the hook's cost per object.
///
/// Let the hook take the part x of a window's time. The rest, 1 - x, held the program's work. The window was prolonged
/// as if the hook took the part y, so it was meant to hold the work of 1 - y. So what was seen stands for
/// `1 + (1 - d) (x - y) / (1 - x)` times as much as it seems to, if windows cover the part d of the time: outside, work
/// is done at full speed.
///
/// But a hook that stays on after its window's end, for lack of a safe point, costs no coverage then: whether that work
/// is seen was decided at its beginning. So only the part counts that was in time.
#[derive(Debug)]
pub(super) struct Costs {
    /// How many objects those stand for that were seen, if windows were prolonged by what the hook took.
    seen: f64,
    /// By the binary logarithm of the density.
    bins: [Bin; BINS],
}

/// Sums over on-times of similar density.
#[derive(Debug, Default, Clone, Copy)]
struct Bin {
    /// For objects in time: how many there are outside windows for each of them.
    objects: f64,
    /// The sum of those times the density, times the part in which samples were taken, and times what was taken to be
    /// the hook's part.
    moment: f64,
    sampling: f64,
    assumed: f64,
}

/// Two bins per power of two, from 2^-20 objects per nanosecond (a thousand per millisecond) upwards.
const BINS: usize = 36;
const BINS_PER_OCTAVE: f64 = 2.0;
const LEAST_EXPONENT: f64 = -20.0;

/// The greatest part of a window's time apart from samples that the hook is believed to have. Above it costs are not
/// told apart.
pub const MOST_TAKEN: f64 = 0.8;
/// Of how many objects a bin is forgotten: otherwise its sums would become so small that they fade no further, and lose
/// their ratios.
const NEARLY_NONE: f64 = 1e-6;
/// The greatest part that anything has: where clocks do not agree it may seem to be more than all.
const NEARLY_ALL: f64 = 0.99;

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
            bin.sampling *= keep;
            bin.assumed *= keep;
            if bin.objects < NEARLY_NONE {
                *bin = Bin::default();
            }
        }
    }

    /// Adds what a window has seen.
    pub fn add(&mut self, Seen { objects, density, in_time, share, sampling, prolonged, .. }: Seen) {
        let position = ((density.log2() - LEAST_EXPONENT) * BINS_PER_OCTAVE).clamp(0.0, (BINS - 1) as f64);
        let bin = &mut self.bins[position as usize];
        let outside = objects * in_time * (1.0 - share) / share;
        self.seen += objects / share;
        bin.objects += outside;
        bin.moment += outside * density;
        bin.sampling += outside * sampling.min(NEARLY_ALL);
        bin.assumed += outside * prolonged.min(NEARLY_ALL);
    }

    /// How many objects the program has allocated, by what was seen, if the hook costs `cost`.
    pub fn total(&self, cost: f64) -> f64 {
        let bins = self.bins.iter().filter(|bin| bin.objects > 0.0);
        let displaced = |bin: &Bin| {
            let [sampling, other] = [bin.sampling, cost * bin.moment].map(|sum| sum / bin.objects);
            let part = sampling + other.min(MOST_TAKEN * (1.0 - sampling));
            (bin.objects * part - bin.assumed) / (1.0 - part)
        };
        self.seen + bins.map(displaced).sum::<f64>()
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

    const SHARE: f64 = 0.1;

    /// A window, the part `prolonged` of which was added for the hook.
    fn seen(objects: f64, density: f64, prolonged: f64) -> Seen {
        Seen { group: WindowGroup::new(0), objects, density, in_time: 1.0, share: SHARE, sampling: 0.0, prolonged }
    }

    /// A second of each density, whose hook costs `cost` and `sampling`, in windows prolonged by `sampling` and `assumed`
    /// per object; and how many objects there are.
    fn mixed(cost: f64, sampling: f64, assumed: f64) -> (Costs, f64) {
        let (mut costs, mut allocated) = (Costs::new(), 0.0);
        for per_nanosecond in [1e-5, 1e-3, 1.3e-2] {
            let density = per_nanosecond / (1.0 + (cost + sampling) * per_nanosecond);
            // A nanosecond of the window meant to be is 1 / (1 - (sampling + assumed) * density) of it in fact.
            let left = |hook: f64| 1.0 - hook * density;
            let work = SHARE * 1e9 * left(cost + sampling) / left(assumed + sampling);
            let prolonged = (sampling + assumed) * density;
            costs.add(Seen { sampling: sampling * density, ..seen(work * per_nanosecond, density, prolonged) });
            allocated += (1.0 - SHARE) * 1e9 * per_nanosecond + work * per_nanosecond;
        }
        (costs, allocated)
    }

    #[test]
    fn the_cost_is_found_from_a_mix_of_densities() {
        for assumed in [0.0, 20.0, 60.0, 100.0] {
            let (costs, allocated) = mixed(40.0, 0.0, assumed);
            let found = costs.solve(allocated, 100.0);
            assert!((found - 40.0).abs() < 0.1, "{found} where {assumed} was assumed");
        }
    }

    #[test]
    fn what_samples_take_is_no_part_of_the_cost() {
        for assumed in [0.0, 20.0, 60.0, 100.0] {
            let (costs, allocated) = mixed(40.0, 60.0, assumed);
            let found = costs.solve(allocated, 100.0);
            assert!((found - 40.0).abs() < 0.1, "{found} where {assumed} was assumed");
        }
    }

    #[test]
    fn windows_prolonged_by_the_cost_see_their_share() {
        let (costs, allocated) = mixed(40.0, 0.0, 40.0);
        assert!((costs.total(40.0) / allocated - 1.0).abs() < 1e-9);
        assert!((costs.seen / allocated - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_cost_stays_within_its_bounds() {
        let mut costs = Costs::new();
        costs.add(seen(1e6, 0.01, 0.0));
        assert!(costs.solve(0.0, 60.0) < 0.1);
        assert!(costs.solve(1e12, 60.0) > 59.9);
    }

    #[test]
    fn no_density_is_too_high_or_too_low() {
        let mut costs = Costs::new();
        for density in [0.0, 1e-30, 1e30, f64::INFINITY] {
            costs.add(seen(1.0, density, 20.0 * density));
        }
        assert!(costs.total(10.0).is_finite(), "{}", costs.total(10.0));
        assert!((0.0..=20.0).contains(&costs.solve(40.0, 20.0)), "{}", costs.solve(40.0, 20.0));
    }

    #[test]
    fn a_density_not_seen_for_hours_is_forgotten() {
        let (mut costs, allocated) = mixed(40.0, 0.0, 40.0);
        costs.add(Seen { sampling: 0.3, ..seen(1e6, 0.1, 0.7) });
        // So that each would fade no further.
        (0..1_000_000).for_each(|_| costs.decay(0.996));
        assert_eq!(costs.total(40.0), costs.seen);
        let (others, _) = mixed(40.0, 0.0, 40.0);
        costs.bins = others.bins;
        costs.seen += others.seen;
        assert!((costs.solve(allocated, 100.0) - 40.0).abs() < 0.1);
    }

    #[test]
    fn time_after_the_end_costs_nothing() {
        let mut costs = Costs::new();
        costs.add(Seen { in_time: 0.0, ..seen(1e6, 0.01, 0.0) });
        assert_eq!(costs.total(0.0), costs.total(50.0));
    }
}
