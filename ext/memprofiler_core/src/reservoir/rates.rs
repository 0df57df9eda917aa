//! The probabilities with which samples were taken.

use super::{Departed, LiveSample};
use crate::window_group::WindowGroup;

/// The probability with which a sample was taken and its window's group, an id in a [`RateTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateId(pub(super) u16);

/// The distinct inclusion probabilities of the live samples, by group of windows. A sample keeps its own for life,
/// whatever the sampling rate does later; only thinning changes them, for the whole set at once.
#[derive(Debug, Default)]
pub struct RateTable {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// None if the entry is free.
    probability: Option<f64>,
    /// None for samples that were not taken in a window.
    window: Option<WindowGroup>,
    /// Seen since the census began.
    counted: bool,
}

impl RateTable {
    /// The id of a probability in `0.0..=1.0` in a group of windows, or None when 65,536 others are in use.
    pub fn id(&mut self, probability: f64, window: Option<WindowGroup>) -> Option<RateId> {
        let same = |entry: &Entry| entry.probability == Some(probability) && entry.window == window;
        let free = |entry: &Entry| entry.probability.is_none();
        let find = |wanted: &dyn Fn(&Entry) -> bool| self.entries.iter().position(wanted);
        let index = find(&same).or_else(|| find(&free)).unwrap_or(self.entries.len());
        let id = u16::try_from(index).ok().map(RateId)?;
        let entry = Entry { probability: Some(probability), window, counted: true };
        match self.entries.get_mut(index) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
        Some(id)
    }

    /// How many objects of the program a sample stands for: the inverse of its probability (Horvitz and Thompson).
    #[inline]
    pub fn weight(&self, id: RateId) -> f64 {
        self.probability(id).recip()
    }

    /// What a sample stands for that has left the live set.
    #[inline]
    pub fn departed(&self, sample: LiveSample) -> Departed {
        Departed { sample, weight: self.weight(sample.rate), window: self.window(sample.rate) }
    }

    /// The largest number of objects that a sample stands for, of those not taken in a window; 1 if there is none. An
    /// estimate n of a number of objects from such samples has a variance of at most `n * (greatest_weight - 1)`, hence
    /// an interval of `1.96 * sqrt(n * (greatest_weight - 1))` to either side.
    pub fn greatest_weight(&self) -> f64 {
        let entries = self.entries.iter().filter(|entry| entry.window.is_none());
        let probabilities = entries.filter_map(|entry| entry.probability).filter(|&p| p > 0.0);
        probabilities.map(f64::recip).fold(1.0, f64::max)
    }

    /// The probability behind an id in use.
    #[inline]
    pub fn probability(&self, id: RateId) -> f64 {
        self.entries.get(id.0 as usize).and_then(|entry| entry.probability).unwrap_or(1.0)
    }

    /// The group of windows of an id in use.
    #[inline]
    pub fn window(&self, id: RateId) -> Option<WindowGroup> {
        self.entries.get(id.0 as usize).and_then(|entry| entry.window)
    }

    /// Accounts for a thinning that kept each sample with probability 1/2.
    pub fn halve(&mut self) {
        self.entries.iter_mut().filter_map(|entry| entry.probability.as_mut()).for_each(|p| *p *= 0.5);
    }

    /// Begins to find out which probabilities are in use. Between this and [`end_census`](Self::end_census) every
    /// existing sample must be [counted](Self::count); ids requested meanwhile count automatically.
    pub fn begin_census(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.counted = false);
    }

    /// Counts a sample with this probability.
    #[inline]
    pub fn count(&mut self, id: RateId) {
        if let Some(entry) = self.entries.get_mut(id.0 as usize) {
            entry.counted = true;
        }
    }

    /// Forgets the probabilities that were not counted, so that their ids can be reused.
    pub fn end_census(&mut self) {
        self.entries.iter_mut().filter(|entry| !entry.counted).for_each(|entry| entry.probability = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_keeps_its_weight_when_the_rate_changes() {
        let mut rates = RateTable::default();
        let first = rates.id(0.5, None).unwrap();
        rates.id(0.01, None).unwrap();
        assert_eq!(rates.weight(first), 2.0);
    }

    #[test]
    fn groups_of_windows_are_kept_apart() {
        let mut rates = RateTable::default();
        let [some, other] = [3, 5].map(|number| Some(WindowGroup::new(number)));
        let [a, b, c] = [None, some, other].map(|window| rates.id(0.5, window).unwrap());
        assert_eq!([a, b, c].map(|id| rates.window(id)), [None, some, other]);
        assert_eq!(rates.id(0.5, some), Some(b));
    }

    #[test]
    fn halving_doubles_all_weights() {
        let mut rates = RateTable::default();
        let (a, b) = (rates.id(1.0, None).unwrap(), rates.id(0.1, None).unwrap());
        rates.halve();
        assert_eq!((rates.weight(a), rates.weight(b)), (2.0, 20.0));
    }

    #[test]
    fn a_census_frees_unused_probabilities() {
        let mut rates = RateTable::default();
        (1..=1000).for_each(|n| assert!(rates.id(1.0 / f64::from(n), None).is_some()));
        let used = [rates.id(0.5, None).unwrap(), rates.id(0.001, None).unwrap()];
        rates.begin_census();
        used.iter().for_each(|&id| rates.count(id));
        let late = rates.id(0.25, None).unwrap();
        rates.end_census();
        assert_eq!((used.map(|id| rates.weight(id)), rates.weight(late)), ([2.0, 1000.0], 4.0));
        (2000..2997).for_each(|n| assert!(rates.id(1.0 / f64::from(n), None).unwrap().0 < 1000));
        assert_eq!(rates.id(0.0001, None).unwrap().0, 1000);
        assert_eq!(used.map(|id| rates.weight(id)), [2.0, 1000.0]);
    }

    #[test]
    fn there_is_no_id_when_all_are_in_use() {
        let entry = |n| Entry { probability: Some(1.0 / f64::from(n)), window: None, counted: true };
        let mut rates = RateTable { entries: (1..=65_536).map(entry).collect() };
        assert_eq!(rates.id(0.3, None), None);
        assert!(rates.id(1.0 / 65_536.0, None).is_some());
    }

    #[test]
    fn the_greatest_weight_is_that_of_the_lowest_probability() {
        let mut rates = RateTable::default();
        assert_eq!(rates.greatest_weight(), 1.0);
        [0.5, 0.0, 0.25].into_iter().for_each(|p| assert!(rates.id(p, None).is_some()));
        assert!(rates.id(0.01, Some(WindowGroup::new(0))).is_some());
        assert_eq!(rates.greatest_weight(), 4.0);
    }
}
