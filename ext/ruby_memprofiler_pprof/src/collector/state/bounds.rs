//! Stays within bounds by sampling less.

use super::State;
use crate::allocator::reserve;
use crate::collector::stacks::Stacks;
use memprofiler_core::stack_tree::StackId;
use memprofiler_core::stratum::Stratum;
use memprofiler_core::sums::TallyKey;

/// How many entries the tally may have before sizes and then classes of what they are of are dropped. With windows there
/// are up to sixteen for each stack and class, but most stacks have few samples between two flushes: four times as many,
/// some 12 MB.
const MOST_ENTRIES: usize = 1 << 16;
const MOST_ENTRIES_WITH_WINDOWS: usize = 1 << 18;

impl State {
    /// Ensures that the tables have room for another sample. If there is no memory for them to grow, they are thinned
    /// as at their bounds. False if even that does not help.
    #[inline]
    pub(super) fn reserve(&mut self) -> bool {
        if reserve::is_low() {
            self.counters.allocation_failures += 1;
            return false;
        }
        while !reserve::spare(|| self.reservoir.try_reserve()) {
            self.counters.allocation_failures += 1;
            if self.reservoir.live().is_empty() {
                return false;
            }
            self.halve();
        }
        if !reserve::spare(|| self.sites.stacks.try_reserve()) {
            self.counters.allocation_failures += 1;
            self.make_room_for_stacks(self.sites.stacks.node_count() / 2);
            if !reserve::spare(|| self.sites.stacks.try_reserve()) {
                return false;
            }
        }
        reserve::spare(|| self.sites.classes.try_reserve())
    }

    /// Drops stacks until at most `enough` frames are left. Dead objects lose their stacks, but not their classes. If
    /// that is not enough they lose their labels, and then live samples are thinned, which keeps the estimates unbiased.
    #[cold]
    pub(super) fn make_room_for_stacks(&mut self, enough: usize) {
        self.counters.stack_overflows += 1;
        self.sites.release_dispensable();
        self.lose_stacks_of_dead(Stacks::lose);
        if self.sites.stacks.node_count() > enough {
            self.lose_stacks_of_dead(Stacks::lose_with_origin);
        }
        while self.sites.stacks.node_count() > enough && !self.reservoir.live().is_empty() {
            self.halve();
            if self.flushing.is_some() || self.naming.is_under_way() {
                // What was named is held until the end: halving again and again would not free it.
                self.sites.stacks.raise_limit();
                break;
            }
        }
    }

    /// Exchanges the stacks of dead objects, and those of the peak, for what `lose` makes of them.
    fn lose_stacks_of_dead(&mut self, lose: fn(&mut Stacks, StackId) -> StackId) {
        for (key, allocated) in std::mem::take(&mut self.tally).into_entries() {
            let stack = lose(&mut self.sites.stacks, key.stack);
            self.count_allocated(TallyKey { stack, ..key }, allocated);
        }
        self.lose_stacks_of_peak(lose);
    }

    /// Keeps half of the live samples; see [`Reservoir::halve`](memprofiler_core::reservoir::Reservoir::halve).
    fn halve(&mut self) {
        let (reservoir, mut departures) = self.split();
        reservoir.halve(|sample| departures.release_sample(&sample));
    }

    /// Call this when the tally may have grown: past its limit it drops orders of magnitude and, if half as much is left
    /// then, classes.
    #[inline]
    pub(super) fn bound_tally(&mut self) {
        let windows = self.reservoir.exposure().is_some();
        let most = if windows { MOST_ENTRIES_WITH_WINDOWS } else { MOST_ENTRIES };
        if self.tally.len() > most.max(self.merged_limit) {
            self.merge_sizes();
            if self.tally.len() > most / 2 {
                self.merge_classes();
            }
        }
    }

    /// Adds up dead objects of all sizes, so that the error of their bytes seems to be less than it is.
    #[cold]
    fn merge_sizes(&mut self) {
        for (key, allocated) in std::mem::take(&mut self.tally).into_entries() {
            let stratum = key.stratum.window().map_or(Stratum::ONLY, Stratum::Window);
            if !self.tally.add(TallyKey { stratum, ..key }, allocated) {
                self.sites.release(key.stack, key.class);
            }
        }
    }

    /// Drops the classes of dead objects: adds each sum to that of all classes of its stack. There are then at most as
    /// many sums as stacks, for each set of readers and group of windows.
    #[cold]
    fn merge_classes(&mut self) {
        self.counters.class_overflows += 1;
        let merged = self.sites.classes.named("(class not kept)".into());
        for (key, allocated) in std::mem::take(&mut self.tally).into_entries() {
            self.sites.classes.release(key.class);
            self.sites.classes.retain(merged);
            if !self.tally.add(TallyKey { class: merged, ..key }, allocated) {
                self.sites.release(key.stack, merged);
            }
        }
        self.sites.classes.release(merged);
        self.merged_limit = 2 * self.tally.len();
    }

    /// Changes the rate for new samples; existing ones keep theirs.
    pub fn set_rate(&mut self, rate: f64) {
        // A flush under way may hold what samples that have departed have to report.
        self.reservoir.set_rate(rate, self.flushing.is_some() || !self.tally.is_empty());
    }

    /// Samples dropped by halving since they were last reported to the first reader.
    pub fn thinned_since_flush(&self) -> u64 {
        self.reservoir.thinned() - self.thinned_reported
    }
}
