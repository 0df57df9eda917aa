//! When to act so that windows open and close on time.

use super::{Moment, Schedule};

/// Follows a schedule on behalf of a timer, making each change a little early: by as much as changes of its kind have
/// come late lately. So on average windows of each kind are as long as they should be.
///
/// A timer wakes up late, and the later the longer it has slept: otherwise windows, before which it sleeps for long,
/// would open later than they close, and be too short. Where the hook takes much of the time they would not be: how much
/// that will be is not foreseen exactly, and who comes too early waits again, but nobody comes back who is too late. So
/// what allocates seldom would seem to be less.
#[derive(Debug, Default)]
pub struct Anticipation {
    /// The schedule, what it said last and before.
    followed: Option<(Schedule, [Moment; 2])>,
    /// Of which kind the next change is.
    kind: usize,
    kinds: [Kind; KINDS],
}

/// What is known of changes of a kind.
#[derive(Debug, Default, Clone, Copy)]
struct Kind {
    /// By how many nanoseconds changes are made early.
    early: f64,
    /// How many there were.
    changes: u32,
}

/// Windows open or close; the latter are of several kinds, by for how many nanoseconds the schedule's clock stands still
/// for each: less than the first of these, less than the second, and so on.
const SLOWDOWNS: [f64; 4] = [0.1, 0.5, 1.0, 2.0];
const OPENING: usize = 0;
const KINDS: usize = SLOWDOWNS.len() + 2;

/// Over how many changes the lateness is averaged.
const CHANGES: u32 = 16;
/// The most that counts of a change that came late, and that one is made early, in nanoseconds. Where the machine is
/// that busy, the program itself waits for it.
const MOST: f64 = 200_000.0;

impl Anticipation {
    /// What a schedule says at `now`, by its clock, or will say so soon that it is time.
    pub fn at(&mut self, schedule: Schedule, now: u64) -> Moment {
        let Some((_, [last, _])) = self.followed.filter(|(followed, _)| *followed == schedule) else {
            let moment = schedule.at(now);
            self.followed = Some((schedule, [moment; 2]));
            return moment;
        };
        let soon = now.saturating_add(self.early());
        if soon < last.until {
            return last;
        }
        let late = (now as f64 - last.until as f64).clamp(-MOST, MOST);
        let Kind { early, changes } = self.known();
        let changes = (changes + 1).min(CHANGES);
        self.kinds[self.kind] = Kind { early: (early + late / f64::from(changes)).clamp(0.0, MOST), changes };
        let moment = schedule.at(soon);
        self.followed = Some((schedule, [moment, last]));
        moment
    }

    /// Returns to what the schedule said before the last change, since that was made too early.
    pub fn undo(&mut self) {
        if let Some((_, [last, before])) = &mut self.followed {
            *last = *before;
        }
    }

    /// For how many nanoseconds of CPU time to sleep until the next change, `slowdown` being for how many nanoseconds
    /// the schedule's clock stands still for each.
    pub fn until_change(&mut self, now: u64, slowdown: f64) -> u64 {
        let Some((_, [last, _])) = self.followed else { return 0 };
        self.kind = if last.on { 1 + SLOWDOWNS.iter().filter(|&&least| slowdown >= least).count() } else { OPENING };
        let left = last.until.saturating_sub(now);
        left.saturating_add((left as f64 * slowdown) as u64).saturating_sub(self.early())
    }

    /// How long that would be at least, if the clock did not stand still.
    pub fn least(&self, now: u64) -> u64 {
        let until = self.followed.map_or(0, |(_, [last, _])| last.until);
        until.saturating_sub(now).saturating_sub(self.early())
    }

    /// By how many nanoseconds the next change is to be early.
    pub fn early(&self) -> u64 {
        self.known().early as u64
    }

    /// What is known about the next change. A kind that is new is like the one before.
    fn known(&self) -> Kind {
        let known = |kind: &&Kind| kind.changes > 0;
        self.kinds[..=self.kind].iter().rev().find(known).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const FRAME: u64 = 30_000_000;
    const DUTY: f64 = 0.03;

    fn schedule(seed: u64) -> Schedule {
        Schedule::new(Duration::from_nanos(FRAME), DUTY, seed)
    }

    /// The part of the time that windows take up if the timer comes `opening` and `closing` nanoseconds too late, once
    /// that is known, in multiples of the duty.
    fn coverage(opening: u64, closing: u64) -> f64 {
        let (schedule, mut anticipation) = (schedule(3), Anticipation::default());
        let (mut now, mut open) = (0, 0);
        let (known, end) = (1_000 * FRAME, 4_000 * FRAME);
        while now < end {
            let moment = anticipation.at(schedule, now);
            let next = now + anticipation.until_change(now, 0.0) + if moment.on { closing } else { opening };
            if moment.on && now > known {
                open += next - now;
            }
            now = next;
        }
        open as f64 / (end - known) as f64 / DUTY
    }

    #[test]
    fn windows_are_as_long_as_they_should_be_however_late_the_timer_is() {
        for (opening, closing) in [(0, 0), (120_000, 30_000), (10_000, 90_000), (0, 190_000)] {
            let coverage = coverage(opening, closing);
            assert!((0.99..1.01).contains(&coverage), "{coverage} with {opening} and {closing}");
        }
    }

    #[test]
    fn what_is_very_late_is_not_made_up_for() {
        assert!(coverage(600_000, 0) < 0.9);
    }

    #[test]
    fn a_change_is_as_good_as_made_when_it_is_near() {
        let (schedule, mut anticipation) = (schedule(5), Anticipation::default());
        let mut now = 0;
        for _ in 0..200 {
            anticipation.at(schedule, now);
            now += anticipation.until_change(now, 0.0) + 50_000;
        }
        let moment = anticipation.at(schedule, now);
        anticipation.until_change(now, 0.0);
        let early = anticipation.early();
        assert!((45_000..=50_000).contains(&early), "{early}");
        assert_eq!(anticipation.at(schedule, moment.until - early - 1), moment);
        assert_ne!(anticipation.at(schedule, moment.until - early), moment);
    }

    #[test]
    fn a_clock_that_stands_still_makes_it_longer() {
        let (schedule, mut anticipation) = (schedule(5), Anticipation::default());
        let moment = anticipation.at(schedule, 0);
        assert_eq!(anticipation.until_change(1_000, 2.0), 3 * (moment.until - 1_000));
        assert_eq!(anticipation.least(1_000), moment.until - 1_000);
    }

    #[test]
    fn windows_in_which_the_clock_stands_still_are_a_kind_of_their_own() {
        let (schedule, mut anticipation) = (schedule(7), Anticipation::default());
        let mut now = 0;
        // Where it does, the timer comes late.
        for window in 0..400 {
            let slowdown = f64::from(window % 2) * 3.0;
            for _ in 0..2 {
                let on = anticipation.at(schedule, now).on;
                anticipation.until_change(now, slowdown);
                now += anticipation.least(now) + if on && slowdown > 0.0 { 100_000 } else { 0 };
            }
        }
        while !anticipation.at(schedule, now).on {
            now += anticipation.until_change(now, 0.0);
        }
        let early = [0.0, 3.0].map(|slowdown| {
            anticipation.until_change(now, slowdown);
            anticipation.early()
        });
        assert!(early[0] < 1_000 && (90_000..110_000).contains(&early[1]), "{early:?}");
    }

    #[test]
    fn a_change_that_was_too_early_is_undone() {
        let (schedule, mut anticipation) = (schedule(5), Anticipation::default());
        let first = anticipation.at(schedule, 0);
        assert_ne!(anticipation.at(schedule, first.until), first);
        anticipation.undo();
        assert_eq!(anticipation.at(schedule, first.until - 1), first);
    }

    #[test]
    fn another_schedule_is_followed_at_once() {
        let mut anticipation = Anticipation::default();
        anticipation.at(schedule(5), u64::MAX);
        assert_eq!(anticipation.at(schedule(6), 0), schedule(6).at(0));
    }
}
