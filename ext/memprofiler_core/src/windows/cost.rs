//! How much the hook slows down its own windows.

/// Objects by how densely they were allocated while the hook was on, to find the hook's cost per object.
///
/// If the hook adds c to each object, a window with n objects in time t held only t - c n of the program's work, so that
/// what it saw is part of its work with a probability that is smaller by the factor 1 - c n / t. If windows cover the
/// part d of the time, that is 1 - c n d / t of the work at the same density, hence the factor of [`factor`].
#[derive(Debug)]
pub(super) struct Costs {
    /// By the binary logarithm of the density.
    bins: [Bin; BINS],
}

/// Sums over on-times of similar density.
#[derive(Debug, Default, Clone, Copy)]
struct Bin {
    objects: f64,
    /// Sum of objects times density.
    moment: f64,
}

/// Two bins per power of two, from 2^-20 objects per nanosecond (a thousand per millisecond) upwards.
const BINS: usize = 36;
const BINS_PER_OCTAVE: f64 = 2.0;
const LEAST_EXPONENT: f64 = -20.0;

/// No window has held less than this part of the work of one without a hook.
const FLOOR: f64 = 0.3;

/// The probability that a window at this density (objects per nanosecond) held a piece of the program's work, as a
/// multiple of the part `share` of the time that windows cover, if the hook costs `cost` nanoseconds per object.
pub(super) fn factor(cost: f64, density: f64, share: f64) -> f64 {
    let held = (1.0 - cost * density).max(FLOOR);
    held / (1.0 - share * (1.0 - held))
}

impl Costs {
    pub fn new() -> Self {
        Self { bins: [Bin::default(); BINS] }
    }

    /// Forgets all but the part `keep`.
    pub fn decay(&mut self, keep: f64) {
        for bin in &mut self.bins {
            bin.objects *= keep;
            bin.moment *= keep;
        }
    }

    /// Adds objects that were allocated at this density.
    pub fn add(&mut self, objects: f64, density: f64) {
        let position = ((density.log2() - LEAST_EXPONENT) * BINS_PER_OCTAVE).clamp(0.0, (BINS - 1) as f64);
        let bin = &mut self.bins[position as usize];
        bin.objects += objects;
        bin.moment += objects * density;
    }

    /// How many objects the program has allocated, by what was seen, if the hook costs `cost` and windows cover the
    /// part `share` of the time.
    pub fn total(&self, cost: f64, share: f64) -> f64 {
        let used = self.bins.iter().filter(|bin| bin.objects > 0.0);
        used.map(|bin| bin.objects / (share * factor(cost, bin.moment / bin.objects, share))).sum()
    }

    /// The cost, at most `most`, with which [`total`](Self::total) is `allocated`.
    pub fn solve(&self, allocated: f64, share: f64, most: f64) -> f64 {
        let (mut low, mut high) = (0.0, most);
        for _ in 0..20 {
            let middle = (low + high) / 2.0;
            if self.total(middle, share) < allocated { low = middle } else { high = middle }
        }
        (low + high) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_found_from_a_mix_of_densities() {
        let mut costs = Costs::new();
        // Work of a second each, with the hook on for a tenth of the time.
        let (cost, share, mut allocated) = (40.0, 0.1, 0.0);
        for per_nanosecond in [1e-5, 1e-3, 1e-2] {
            let density = per_nanosecond / (1.0 + cost * per_nanosecond);
            let work = 1e9 * (1.0 - share * cost * density);
            allocated += work * per_nanosecond;
            costs.add(share * 1e9 * density, density);
        }
        let found = costs.solve(allocated, share, 100.0);
        assert!((found - cost).abs() < 0.5, "{found}");
        assert!(costs.total(0.0, share) < 0.9 * allocated);
    }

    #[test]
    fn a_cost_stays_within_its_bounds() {
        let mut costs = Costs::new();
        costs.add(1e6, 0.01);
        assert!(costs.solve(0.0, 0.1, 60.0) < 0.1);
        assert!(costs.solve(1e12, 0.1, 60.0) > 59.9);
    }

    #[test]
    fn no_density_is_too_high_or_too_low() {
        let mut costs = Costs::new();
        for density in [0.0, 1e-30, 1e30, f64::INFINITY] {
            costs.add(1.0, density);
            assert!(factor(20.0, density, 0.1) >= FLOOR);
        }
    }
}
