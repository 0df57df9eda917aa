//! Samples that carry the ids of the span they were taken in.
//!
//! If every sample carried them, no two would be equal and none could be added up. So only some do. OpenTelemetry calls
//! measurements that refer to a trace exemplars.

use crate::labels::LabelSet;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;

/// The ids of a span, big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The id of its trace.
    pub trace_id: u128,
    /// Its own id.
    pub span_id: u64,
}

impl Span {
    /// The labels `trace_id` and `span_id`: 32 and 16 lowercase hexadecimal digits, as tracing tools show them.
    pub fn labels(self) -> LabelSet {
        let mut labels = LabelSet::default();
        labels.set("trace_id", Some(&format!("{:032x}", self.trace_id)));
        labels.set("span_id", Some(&format!("{:016x}", self.span_id)));
        labels
    }
}

/// The spans of the exemplars. Every sample that is offered draws a random number, and those with the smallest numbers
/// are kept. So all samples have the same chance, however many there are, and a call path with many samples almost
/// certainly has an exemplar.
#[derive(Debug)]
pub struct Exemplars {
    spans: BTreeMap<u64, Span>,
    rng: SmallRng,
}

impl Exemplars {
    /// The most exemplars at a time.
    pub const MOST: usize = 1000;

    /// No exemplars. The random numbers are the same in every run.
    pub fn new() -> Self {
        Self { spans: BTreeMap::new(), rng: SmallRng::seed_from_u64(0) }
    }

    /// Offers a sample that was taken in `span`. If it becomes an exemplar, returns its number, of 63 bits; once there
    /// are [`MOST`](Self::MOST), it replaces another one.
    pub fn offer(&mut self, span: Span) -> Option<u64> {
        let number = self.rng.random::<u64>() >> 1;
        if self.spans.len() == Self::MOST {
            let largest = self.spans.last_entry()?;
            if *largest.key() < number {
                return None;
            }
            largest.remove();
        }
        self.spans.insert(number, span);
        Some(number)
    }

    /// The span of the exemplar with this number, unless it was replaced.
    pub fn get(&self, number: u64) -> Option<Span> {
        self.spans.get(&number).copied()
    }

    /// Drops the exemplars whose numbers are no longer used.
    pub fn prune(&mut self, is_used: impl Fn(u64) -> bool) {
        self.spans.retain(|&number, _| is_used(number));
    }

    /// The number of exemplars.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Approximately how many bytes they take.
    pub fn bytes(&self) -> usize {
        self.spans.len() * size_of::<(u64, Span)>()
    }
}

impl Default for Exemplars {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(span_id: u64) -> Span {
        Span { trace_id: 7, span_id }
    }

    /// Offers spans with these ids, in order, and returns those that are exemplars at the end.
    fn kept(exemplars: &mut Exemplars, ids: std::ops::Range<u64>) -> Vec<u64> {
        let numbers: Vec<_> = ids.filter_map(|id| exemplars.offer(span(id))).collect();
        let spans = numbers.into_iter().filter_map(|number| exemplars.get(number));
        spans.map(|span| span.span_id).collect()
    }

    #[test]
    fn ids_are_hexadecimal_with_leading_zeros() {
        let labels = Span { trace_id: 0xab, span_id: 0xcd }.labels();
        assert_eq!(labels.get("trace_id"), Some("000000000000000000000000000000ab"));
        assert_eq!(labels.get("span_id"), Some("00000000000000cd"));
    }

    #[test]
    fn few_are_all_kept() {
        let ids = 0..Exemplars::MOST as u64;
        assert_eq!(kept(&mut Exemplars::new(), ids.clone()), ids.collect::<Vec<_>>());
    }

    #[test]
    fn of_many_as_many_early_as_late_ones_are_kept() {
        let mut exemplars = Exemplars::new();
        let kept = kept(&mut exemplars, 0..100_000);
        assert_eq!((kept.len(), exemplars.len()), (Exemplars::MOST, Exemplars::MOST));
        // Of a tenth, 100 are expected with a standard deviation of 9.4.
        for tenth in 0..10 {
            let count = kept.iter().filter(|&&id| id / 10_000 == tenth).count();
            assert!((50..150).contains(&count), "{count} in part {tenth}");
        }
    }

    #[test]
    fn places_that_take_turns_are_kept_evenly() {
        let kept = kept(&mut Exemplars::new(), 0..100_000);
        for turn in 0..8 {
            let count = kept.iter().filter(|&&id| id % 8 == turn).count();
            assert!((75..175).contains(&count), "{count} of turn {turn}");
        }
    }

    #[test]
    fn unused_exemplars_make_room() {
        let mut exemplars = Exemplars::new();
        let first = exemplars.offer(span(1));
        kept(&mut exemplars, 2..5_000);
        exemplars.prune(|number| Some(number) == first);
        assert!(exemplars.len() <= 1);
        let room = (Exemplars::MOST - exemplars.len()) as u64;
        assert_eq!(kept(&mut exemplars, 0..room).len() as u64, room);
    }
}
