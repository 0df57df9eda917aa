//! When to get windows ready that begin and end by themselves.

use super::Schedule;

/// Follows a schedule on behalf of a timer that gets windows ready. From then on the hook looks at the clock, so a
/// window is where it should be, and as long, however early or late the timer was. All times are by the schedule's
/// clock, in nanoseconds.
///
/// A timer sleeps by real time, and so wakes up where the program waits more often than elsewhere. Were a window to
/// begin then, what programs do first after a wait would be in more windows than what they do next. (Of bursts of
/// 2.6 ms every 12 ms the first quarter seemed to have 1.65 times as many objects as it had.)
#[derive(Debug, Default)]
pub struct Openings {
    /// The schedule, and the number of the next window.
    followed: Option<(Schedule, u64)>,
    /// When the last one ends.
    busy: u64,
}

/// A window to get ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// Its number.
    pub window: u64,
    /// When it opens.
    pub opens: u64,
}

impl Openings {
    /// The window to get ready at `now`, if there is one that opens within `reach` nanoseconds: while one is ready,
    /// objects cost as much as in a window. One that is overdue opens at once, if the program is `running`. Where it
    /// waits that one is missed.
    pub fn due(&mut self, schedule: Schedule, now: u64, running: bool, reach: u64) -> Option<Opening> {
        let upcoming = schedule.next_opening(now);
        let mut next = match self.followed {
            // The one that was got ready last may still be to come; otherwise the clock has gone back.
            Some((followed, next)) if followed == schedule && next <= upcoming + 1 => next,
            _ => {
                self.busy = 0;
                upcoming
            }
        };
        self.followed = Some((schedule, next));
        if now < self.busy {
            return None;
        }
        let overdue = next < upcoming;
        if overdue {
            next = upcoming;
            self.followed = Some((schedule, next));
        }
        let opens = schedule.opening(next);
        let opening = if overdue && running {
            Opening { window: next - 1, opens: now }
        } else if opens.saturating_sub(now) <= reach {
            self.followed = Some((schedule, next + 1));
            Opening { window: next, opens }
        } else {
            return None;
        };
        self.busy = opening.opens.saturating_add(schedule.window());
        Some(opening)
    }

    /// In how many nanoseconds of CPU time the next one opens, or the last one has ended if that is later.
    pub fn until_next(&self, now: u64) -> u64 {
        self.followed.map_or(0, |(schedule, next)| schedule.opening(next).max(self.busy).saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const FRAME: u64 = 30_000_000;
    const REACH: u64 = 450_000;

    fn schedule(seed: u64) -> Schedule {
        Schedule::new(Duration::from_nanos(FRAME), 0.03, seed)
    }

    /// The windows that a timer gets ready in so many frames, which always comes so many nanoseconds too late or, if
    /// that is negative, too early; and when.
    fn opened(schedule: Schedule, frames: u64, late: i64) -> Vec<(u64, Opening)> {
        let (mut openings, mut now, mut opened) = (Openings::default(), 0, Vec::new());
        while now < frames * FRAME {
            opened.extend(openings.due(schedule, now, true, REACH).map(|opening| (now, opening)));
            now += openings.until_next(now).max(1).saturating_add_signed(late).max(1);
        }
        opened
    }

    #[test]
    fn each_frame_has_one_window() {
        let windows: Vec<u64> = opened(schedule(1), 1_000, 0).iter().map(|(_, opening)| opening.window).collect();
        assert!(windows.len() > 990 && windows.windows(2).all(|pair| pair[1] > pair[0]), "{}", windows.len());
    }

    #[test]
    fn windows_open_when_they_should_unless_another_has_to_end() {
        let schedule = schedule(2);
        let opened = opened(schedule, 1_000, 0);
        for pair in opened.windows(2) {
            let [(_, before), (_, opening)] = [pair[0], pair[1]];
            let wanted = schedule.opening(opening.window).max(before.opens + schedule.window());
            assert_eq!(opening.opens, wanted);
        }
    }

    #[test]
    fn a_timer_that_is_late_opens_windows_late() {
        let opened = opened(schedule(3), 1_000, 100_000);
        assert!((970..=1_001).contains(&opened.len()), "{}", opened.len());
        assert!(opened.iter().all(|&(now, opening)| opening.opens >= now));
    }

    #[test]
    fn a_timer_that_is_a_little_early_does_not_sleep_again() {
        let schedule = schedule(4);
        let opened = opened(schedule, 1_000, -400_000);
        assert!((970..=1_001).contains(&opened.len()), "{}", opened.len());
        let early = |&&(now, opening): &&(u64, Opening)| opening.opens > now;
        assert!(opened.iter().filter(early).all(|(_, opening)| opening.opens == schedule.opening(opening.window)));
        assert!(opened.iter().filter(early).count() > 900);
    }

    #[test]
    fn of_windows_that_are_overdue_only_the_last_opens() {
        let (schedule, mut openings) = (schedule(5), Openings::default());
        openings.due(schedule, 0, true, REACH);
        let now = schedule.opening(10) + 20_000;
        assert_eq!(openings.due(schedule, now, true, REACH), Some(Opening { window: 10, opens: now }));
        assert_eq!(openings.due(schedule, now, true, REACH), None);
    }

    #[test]
    fn none_begins_where_the_program_waits() {
        let (schedule, mut openings) = (schedule(5), Openings::default());
        openings.due(schedule, 0, true, REACH);
        let now = schedule.opening(10) + 20_000;
        assert_eq!(openings.due(schedule, now, false, REACH), None);
        let next = schedule.opening(11);
        let ready = Some(Opening { window: 11, opens: next });
        assert_eq!(openings.due(schedule, next - REACH, false, REACH), ready);
    }

    #[test]
    fn one_is_got_ready_shortly_before() {
        let (schedule, mut openings) = (schedule(6), Openings::default());
        let next = schedule.opening(11);
        openings.due(schedule, schedule.opening(10) + schedule.window(), true, REACH);
        assert_eq!(openings.due(schedule, next - schedule.window(), true, REACH), None);
        let ready = Some(Opening { window: 11, opens: next });
        assert_eq!(openings.due(schedule, next - REACH, true, REACH), ready);
    }

    #[test]
    fn a_clock_that_goes_back_does_not_stop_it() {
        let (schedule, mut openings) = (schedule(8), Openings::default());
        openings.due(schedule, 1_000 * FRAME, true, REACH);
        openings.due(schedule, 0, true, REACH);
        assert!(openings.until_next(0) <= 2 * FRAME);
    }

    #[test]
    fn another_schedule_is_followed_from_then_on() {
        let mut openings = Openings::default();
        openings.due(schedule(6), 0, true, REACH);
        openings.due(schedule(7), 0, true, REACH);
        let next = schedule(7).next_opening(schedule(7).window() / 2);
        assert_eq!(openings.until_next(0), schedule(7).opening(next));
    }
}
