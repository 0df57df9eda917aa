//! The probabilities with which samples were taken.

use crate::live_set::RateId;

/// The distinct inclusion probabilities of the live samples. A sample keeps its own for life, whatever the sampling
/// rate does later; only thinning the whole set changes them, all at once.
#[derive(Debug, Default)]
pub struct RateTable {
    probabilities: Vec<f64>,
}

impl RateTable {
    /// The id for a probability in `0.0..=1.0`, or None when 65,535 others are in use.
    pub fn id(&mut self, probability: f64) -> Option<RateId> {
        let found = self.probabilities.iter().position(|&known| known == probability);
        let index = found.unwrap_or_else(|| {
            self.probabilities.push(probability);
            self.probabilities.len() - 1
        });
        u16::try_from(index).ok().map(RateId)
    }

    /// How many objects of the program a sample stands for: the inverse of its probability (Horvitz and Thompson).
    #[inline]
    pub fn weight(&self, id: RateId) -> f64 {
        self.probabilities[id.0 as usize].recip()
    }

    /// The most objects that a sample stands for; 1 if there is none. An estimate n of a number of objects has a variance
    /// of at most n times one less, hence an interval of `1.96 * sqrt(n * (greatest_weight - 1))` to either side.
    pub fn greatest_weight(&self) -> f64 {
        self.probabilities.iter().filter(|&&p| p > 0.0).map(|p| p.recip()).fold(1.0, f64::max)
    }

    /// The probability behind an id.
    pub fn probability(&self, id: RateId) -> f64 {
        self.probabilities[id.0 as usize]
    }

    /// Accounts for a thinning in which each sample stayed with probability 1/2.
    pub fn halve(&mut self) {
        self.probabilities.iter_mut().for_each(|probability| *probability *= 0.5);
    }

    /// Forgets the probabilities that no sample uses, and renumbers `used` accordingly.
    pub fn compact<'a>(&mut self, used: impl Iterator<Item = &'a mut RateId>) {
        let old = std::mem::take(&mut self.probabilities);
        for id in used {
            let probability = old[id.0 as usize];
            // There cannot be more probabilities than there were.
            if let Some(new) = self.id(probability) {
                *id = new;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_keeps_its_weight_when_the_rate_changes() {
        let mut rates = RateTable::default();
        let first = rates.id(0.5).unwrap();
        rates.id(0.01).unwrap();
        assert_eq!(rates.weight(first), 2.0);
    }

    #[test]
    fn halving_doubles_all_weights() {
        let mut rates = RateTable::default();
        let (a, b) = (rates.id(1.0).unwrap(), rates.id(0.1).unwrap());
        rates.halve();
        assert_eq!((rates.weight(a), rates.weight(b)), (2.0, 20.0));
    }

    #[test]
    fn compacting_keeps_the_probabilities_in_use() {
        let mut rates = RateTable::default();
        (1..=1000).for_each(|n| assert!(rates.id(1.0 / f64::from(n)).is_some()));
        let mut used = [rates.id(0.5).unwrap(), rates.id(0.001).unwrap()];
        rates.compact(used.iter_mut());
        assert_eq!(used.map(|id| rates.weight(id)), [2.0, 1000.0]);
        assert_eq!(rates.probabilities.len(), 2);
    }
}
