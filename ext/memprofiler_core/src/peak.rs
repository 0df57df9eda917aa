//! The live set as it was when a process had the most memory.

use crate::reservoir::ClassId;
use crate::stack_tree::StackId;
use crate::stratum::Stratum;
use crate::sums::{Allocated, Sums};
use std::time::SystemTime;

/// The key of a live set: objects of one stack, class and stratum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PeakKey {
    /// Where they were allocated.
    pub stack: StackId,
    /// Their class.
    pub class: ClassId,
    /// Which of them are added up.
    pub stratum: Stratum,
}

/// A live set, added up: its size depends on the number of sites, and is at most that of the samples.
#[derive(Debug)]
pub struct LiveSums {
    /// The bytes that the process had resident then.
    pub resident: u64,
    /// When that was.
    pub time: SystemTime,
    /// How many samples were alive.
    pub samples: usize,
    /// The bytes of the live objects, as estimated.
    pub bytes: f64,
    /// The largest number of objects that a sample stands for, as in the other profiles of that time.
    pub greatest_weight: f64,
    /// Each entry holds a reference to its stack and class, once the set is kept.
    pub sums: Sums<PeakKey, Allocated>,
}

impl LiveSums {
    /// A set without objects yet.
    pub fn new(resident: u64, time: SystemTime, greatest_weight: f64) -> Self {
        Self { resident, time, samples: 0, bytes: 0.0, greatest_weight, sums: Sums::new() }
    }

    /// Adds the objects that one sample stands for.
    pub fn add(&mut self, key: PeakKey, allocated: Allocated) {
        self.samples += 1;
        self.bytes += allocated.bytes;
        self.sums.add(key, allocated);
    }
}

/// Keeps the live set with the most bytes among those that are looked at: whenever the process has 5 % more resident
/// bytes than ever before. So from 10 MB to 10 GB it looks 142 times, however long that takes.
#[derive(Debug, Default)]
pub struct Peak {
    /// The resident bytes from which on to look again.
    threshold: u64,
    kept: Option<LiveSums>,
}

impl Peak {
    /// Whether to look at the live set, with that many resident bytes.
    pub fn is_due(&self, resident: u64) -> bool {
        resident >= self.threshold
    }

    /// Keeps the live set if it is the greatest so far. Returns the one that is not kept: this or the previous one.
    pub fn offer(&mut self, found: LiveSums) -> Option<LiveSums> {
        self.threshold = found.resident + found.resident / 20;
        match &self.kept {
            Some(kept) if kept.bytes >= found.bytes => Some(found),
            _ => self.kept.replace(found),
        }
    }

    /// The live set that is kept.
    pub fn kept(&self) -> Option<&LiveSums> {
        self.kept.as_ref()
    }

    /// The sums of the live set that is kept.
    pub fn sums_mut(&mut self) -> Option<&mut Sums<PeakKey, Allocated>> {
        self.kept.as_mut().map(|kept| &mut kept.sums)
    }

    /// Takes the live set out, and looks again at the next opportunity.
    pub fn take(&mut self) -> Option<LiveSums> {
        self.threshold = 0;
        self.kept.take()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.sums.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(resident: u64, bytes: f64) -> LiveSums {
        let mut live = LiveSums::new(resident, SystemTime::UNIX_EPOCH, 1.0);
        let key = PeakKey { stack: StackId::EMPTY, class: ClassId(0), stratum: Stratum::ONLY };
        live.add(key, Allocated { objects: 1.0, bytes });
        live
    }

    #[test]
    fn the_live_set_is_looked_at_for_each_5_percent_more() {
        let mut peak = Peak::default();
        let looks = (0..=1_000_000).filter(|&resident| {
            let due = peak.is_due(resident * 10_000);
            if due {
                peak.offer(live(resident * 10_000, 1.0));
            }
            due
        });
        // 10 KB to 10 GB: 283 times 5 %, fewer for steps of 10 KB.
        assert!((180..=290).contains(&looks.count()));
    }

    #[test]
    fn less_memory_is_no_reason_to_look() {
        let mut peak = Peak::default();
        peak.offer(live(1000, 1.0));
        assert!([0, 1000, 1049].iter().all(|&resident| !peak.is_due(resident)));
        assert!(peak.is_due(1050));
    }

    #[test]
    fn the_greatest_live_set_is_kept() {
        let mut peak = Peak::default();
        assert!(peak.offer(live(1000, 5.0)).is_none());
        // Resident, but no longer alive.
        assert_eq!(peak.offer(live(2000, 4.0)).map(|other| other.resident), Some(2000));
        assert_eq!(peak.kept().map(|kept| kept.resident), Some(1000));
        assert!(!peak.is_due(2000));
        assert_eq!(peak.offer(live(3000, 6.0)).map(|other| other.resident), Some(1000));
        assert_eq!(peak.kept().map(|kept| (kept.resident, kept.bytes, kept.samples)), Some((3000, 6.0, 1)));
    }

    #[test]
    fn what_was_taken_out_is_replaced_at_once() {
        let mut peak = Peak::default();
        peak.offer(live(1000, 5.0));
        assert_eq!(peak.take().map(|taken| taken.bytes), Some(5.0));
        assert!(peak.kept().is_none() && peak.is_due(0));
        assert!(peak.offer(live(500, 1.0)).is_none());
        assert_eq!(peak.kept().map(|kept| kept.bytes), Some(1.0));
    }
}
