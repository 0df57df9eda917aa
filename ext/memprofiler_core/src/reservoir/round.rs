//! Rounds that visit each sample once, in steps, while samples come and go.

use super::{LiveSample, Reservoir};

impl Reservoir {
    /// Begins a round, after the last one has ended or was abandoned. New samples wait for the next round.
    pub fn begin_round(&mut self) {
        self.round = self.round.checked_add(1).unwrap_or_else(|| {
            // Samples not visited for that long must not pass for visited now.
            self.live.samples_mut().for_each(|sample| sample.seen = 0);
            1
        });
        self.begin_census();
    }

    /// Whether a sample still has to be visited in this round.
    #[inline]
    pub fn is_due(&self, sample: &LiveSample) -> bool {
        sample.seen != self.round
    }

    /// Marks the sample at this position in the live set as visited and returns it; its address must not be changed.
    #[inline]
    pub fn visited(&mut self, position: usize) -> Option<&mut LiveSample> {
        let sample = self.live.sample_mut(position)?;
        sample.seen = self.round;
        self.rates.count(sample.rate);
        Some(sample)
    }

    /// Ends a round that has visited all samples that were due. Forgets probabilities that are no longer in use.
    pub fn end_round(&mut self) {
        self.rates.end_census();
    }
}

#[cfg(test)]
mod tests {
    use super::super::ClassId;
    use super::*;
    use crate::readers::Readers;
    use crate::stack_tree::StackId;

    fn insert(reservoir: &mut Reservoir, address: u64) {
        let candidate = reservoir.select();
        let sample = LiveSample::new(address, StackId::EMPTY, ClassId(0), 0, Readers::NONE);
        assert!(reservoir.insert(candidate, sample, drop).is_none());
    }

    fn due(reservoir: &Reservoir) -> Vec<u64> {
        reservoir.live().samples().iter().filter(|sample| reservoir.is_due(sample)).map(|it| it.address).collect()
    }

    #[test]
    fn a_sample_waits_for_the_next_round_and_is_visited_once() {
        let mut reservoir = Reservoir::new(1.0, 10, 1);
        insert(&mut reservoir, 0);
        reservoir.begin_round();
        insert(&mut reservoir, 40);
        assert_eq!(due(&reservoir), [0]);
        reservoir.visited(0);
        assert_eq!(due(&reservoir), [0; 0]);
        reservoir.begin_round();
        assert_eq!(due(&reservoir), [0, 40]);
    }

    #[test]
    fn a_sample_stays_due_however_many_rounds_are_abandoned() {
        let mut reservoir = Reservoir::new(1.0, 10, 1);
        reservoir.begin_round();
        insert(&mut reservoir, 0);
        for round in 0..1000 {
            reservoir.begin_round();
            insert(&mut reservoir, 40);
            assert_eq!(due(&reservoir), [0], "in round {round}");
            assert!(reservoir.remove(40).is_some());
        }
    }

    #[test]
    fn a_round_frees_unused_probabilities() {
        let mut reservoir = Reservoir::new(0.0625, 10, 1);
        reservoir.set_rate(0.125, true);
        insert(&mut reservoir, 0);
        reservoir.set_rate(0.5, true);
        assert_eq!(reservoir.greatest_weight(), 16.0);
        reservoir.begin_round();
        reservoir.visited(0);
        reservoir.end_round();
        assert_eq!(reservoir.greatest_weight(), 8.0);
        assert_eq!(reservoir.weight(&reservoir.live().samples()[0]), 8.0);
    }
}
