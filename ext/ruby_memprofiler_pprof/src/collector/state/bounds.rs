//! Keeping within bounds, by sampling less.

use super::State;

/// How many entries the tally may have, before their classes are given up.
pub const MOST_ENTRIES: usize = 1 << 16;

impl State {
    /// Makes sure that the tables have room for another sample: where there is no memory for them to grow, they are
    /// thinned as at their bounds. False if not even that helps.
    #[inline]
    pub(super) fn reserve(&mut self) -> bool {
        while !self.reservoir.try_reserve() {
            self.counters.allocation_failures += 1;
            if self.reservoir.live().is_empty() {
                return false;
            }
            self.halve();
        }
        if !self.sites.stacks.try_reserve() {
            self.counters.allocation_failures += 1;
            self.make_room_for_stacks(self.sites.stacks.node_count() / 2);
            if !self.sites.stacks.try_reserve() {
                return false;
            }
        }
        self.sites.classes.try_reserve()
    }

    /// Drops stacks until at most `enough` frames are left. What is known of dead objects loses its stack, not
    /// its class; if that is not enough, live samples are thinned, which keeps the estimates unbiased.
    #[cold]
    pub(super) fn make_room_for_stacks(&mut self, enough: usize) {
        self.counters.stack_overflows += 1;
        self.sites.release_dispensable();
        for ((stack, class, readers), allocated) in std::mem::take(&mut self.tally).into_entries() {
            let lost = self.sites.stacks.lose(stack);
            self.count_allocated((lost, class, readers), allocated);
        }
        while self.sites.stacks.node_count() > enough && !self.reservoir.live().is_empty() {
            self.halve();
            if self.flushing.is_some() || self.naming.is_under_way() {
                // What was named is held to the end: to halve again and again would not set that free.
                self.sites.stacks.raise_limit();
                break;
            }
        }
    }

    /// Keeps half of the live samples; see [`Reservoir::halve`](memprofiler_core::reservoir::Reservoir::halve).
    fn halve(&mut self) {
        let (reservoir, mut departures) = self.split();
        reservoir.halve(|sample| departures.release_sample(&sample));
    }

    /// To be called when the tally may have more entries: past its limit it gives up classes.
    #[inline]
    pub(super) fn bound_tally(&mut self) {
        if self.tally.len() > self.tally_limit {
            self.merge_classes();
        }
    }

    /// Gives up the classes of what has died: each sum is added to that of all classes of its stack. There are at most
    /// as many as stacks then, for each set of readers.
    #[cold]
    fn merge_classes(&mut self) {
        self.counters.class_overflows += 1;
        let merged = self.sites.classes.named("(class not kept)".into());
        for ((stack, class, readers), allocated) in std::mem::take(&mut self.tally).into_entries() {
            self.sites.classes.release(class);
            self.sites.classes.retain(merged);
            if !self.tally.add((stack, merged, readers), allocated) {
                self.sites.release(stack, merged);
            }
        }
        self.sites.classes.release(merged);
        self.tally_limit = MOST_ENTRIES.max(2 * self.tally.len());
    }

    /// Samples with probability `rate` from now on; samples already taken keep theirs.
    pub fn set_rate(&mut self, rate: f64) {
        self.reservoir.set_rate(rate, !self.tally.is_empty());
    }

    /// Samples removed by halving since the first reader was last told how many.
    pub fn thinned_since_flush(&self) -> u64 {
        self.reservoir.thinned() - self.thinned_told
    }
}
