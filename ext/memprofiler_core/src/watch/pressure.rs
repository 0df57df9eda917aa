//! What the kernel reports of memory that is short: memory.events.local, memory.failcnt and memory.pressure.

use super::source::Reading;
use std::time::Duration;

/// Over how long stalls are compared with the time.
const SPAN: Duration = Duration::from_millis(100);

/// The part of the time for which tasks may wait for memory before that counts.
const STALLED: f64 = 0.1;

/// What was reported last.
#[derive(Debug, Default)]
pub struct Pressure {
    /// The counts of the reading before; None before the first.
    counts: Option<(u64, u64)>,
    /// When the time of stalls was noted, and how long it was.
    stalls: Option<(Duration, Duration)>,
}

/// What has happened since the last reading.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Signs {
    /// The kernel has looked for something to kill.
    pub killing: bool,
    /// The limit was reached, and something had to be given back.
    pub reached: bool,
    /// Tasks have waited for memory for a good part of the time.
    pub stalled: bool,
}

impl Pressure {
    /// Compares with the reading before.
    pub fn look(&mut self, now: Duration, reading: &Reading) -> Signs {
        let counts = (reading.kills, reading.reached);
        let before = self.counts.replace(counts).unwrap_or(counts);
        let mut signs = Signs { killing: counts.0 > before.0, reached: counts.1 > before.1, stalled: false };
        match (self.stalls, reading.stalled) {
            (Some((then, before)), Some(stalled)) if now.saturating_sub(then) >= SPAN => {
                let waited = stalled.saturating_sub(before).as_secs_f64();
                signs.stalled = waited >= STALLED * (now - then).as_secs_f64();
                self.stalls = Some((now, stalled));
            }
            (None, Some(stalled)) => self.stalls = Some((now, stalled)),
            _ => {}
        }
        signs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn counts_matter_when_they_grow() {
        let mut pressure = Pressure::default();
        let mut look = |kills, reached| {
            let signs = pressure.look(at(0), &Reading { kills, reached, ..Reading::default() });
            (signs.killing, signs.reached)
        };
        assert_eq!(look(3, 7), (false, false));
        assert_eq!(look(3, 7), (false, false));
        assert_eq!(look(3, 8), (false, true));
        assert_eq!(look(4, 8), (true, false));
    }

    #[test]
    fn stalls_are_compared_with_the_time() {
        let mut pressure = Pressure::default();
        let mut look = |millis, stalled| {
            pressure.look(at(millis), &Reading { stalled: Some(at(stalled)), ..Reading::default() }).stalled
        };
        assert!(!look(0, 5000));
        assert!(!look(50, 5050), "too soon to tell");
        assert!(look(100, 5050));
        assert!(!look(1000, 5139));
        assert!(look(2000, 5239));
    }
}
