//! When to open windows that close by themselves.

use super::Schedule;

/// Follows a schedule on behalf of a timer that only opens windows, each of which lasts as long as any other from then
/// on, however early or late it was opened. Times are by the schedule's clock, in nanoseconds.
///
/// The timer comes early where the hook has taken some of the time, for which that clock has stood still, and where the
/// program did not run. Half of a window too early is near enough: to sleep once more costs more than it gains.
#[derive(Debug, Default)]
pub struct Openings {
    /// The schedule, and the number of the next window.
    followed: Option<(Schedule, u64)>,
}

impl Openings {
    /// The number of the window that opens at `now`, if there is one. Of several that are overdue, the last.
    pub fn due(&mut self, schedule: Schedule, now: u64) -> Option<u64> {
        let soon = now.saturating_add(schedule.window() / 2);
        let next = match self.followed {
            Some((followed, next)) if followed == schedule => next,
            _ => schedule.next_opening(now),
        };
        let after = schedule.next_opening(soon);
        // Also where the clock has gone back.
        self.followed = Some((schedule, after));
        (after > next).then(|| after - 1)
    }

    /// For how many nanoseconds of CPU time to sleep until the next one.
    pub fn until_next(&self, now: u64) -> u64 {
        self.followed.map_or(0, |(schedule, next)| schedule.opening(next).saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const FRAME: u64 = 30_000_000;

    fn schedule(seed: u64) -> Schedule {
        Schedule::new(Duration::from_nanos(FRAME), 0.03, seed)
    }

    /// The windows that a timer opens in so many frames that always comes so many nanoseconds too late or, if that is
    /// negative, too early; and when.
    fn opened(schedule: Schedule, frames: u64, late: i64) -> Vec<(u64, u64)> {
        let (mut openings, mut now, mut opened) = (Openings::default(), 0, Vec::new());
        while now < frames * FRAME {
            opened.extend(openings.due(schedule, now).map(|window| (window, now)));
            now += openings.until_next(now).max(1).saturating_add_signed(late).max(1);
        }
        opened
    }

    #[test]
    fn each_frame_has_one_window_unless_the_next_frames_is_near() {
        let opened = opened(schedule(1), 1_000, 0);
        let near = |first: u64| schedule(1).opening(first + 1) - schedule(1).opening(first) <= 450_000;
        let missed: Vec<u64> = (1..1_000).filter(|&each| opened.iter().all(|&(window, _)| window != each)).collect();
        assert!(missed.len() < 30 && missed.iter().all(|&missed| near(missed)), "{missed:?}");
    }

    #[test]
    fn windows_open_when_they_should() {
        let schedule = schedule(2);
        assert!(opened(schedule, 1_000, 0).iter().all(|&(window, now)| now == schedule.opening(window)));
    }

    #[test]
    fn a_timer_that_is_late_opens_nearly_all() {
        let opened = opened(schedule(3), 1_000, 100_000);
        assert!((970..=1_001).contains(&opened.len()), "{}", opened.len());
    }

    #[test]
    fn a_timer_that_is_a_little_early_does_not_sleep_again() {
        let schedule = schedule(4);
        let opened = opened(schedule, 1_000, -400_000);
        assert!(opened.iter().all(|&(window, now)| schedule.opening(window) - now <= 450_000));
        assert!((970..=1_001).contains(&opened.len()), "{}", opened.len());
    }

    #[test]
    fn of_windows_that_are_overdue_only_the_last_opens() {
        let (schedule, mut openings) = (schedule(5), Openings::default());
        openings.due(schedule, 0);
        let now = 10 * FRAME;
        let last = openings.due(schedule, now);
        assert_eq!(last.map(|last| last + 1), Some(schedule.next_opening(now + schedule.window() / 2)));
        assert_eq!(openings.due(schedule, now), None);
    }

    #[test]
    fn a_clock_that_goes_back_does_not_stop_it() {
        let (schedule, mut openings) = (schedule(8), Openings::default());
        openings.due(schedule, 1_000 * FRAME);
        openings.due(schedule, 0);
        assert!(openings.until_next(0) <= 2 * FRAME);
    }

    #[test]
    fn another_schedule_is_followed_from_then_on() {
        let mut openings = Openings::default();
        openings.due(schedule(6), 0);
        openings.due(schedule(7), 0);
        let next = schedule(7).next_opening(schedule(7).window() / 2);
        assert_eq!(openings.until_next(0), schedule(7).opening(next));
    }
}
