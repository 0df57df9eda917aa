//! When windows are open.

use crate::window_group::WindowGroup;
use std::time::Duration;

/// One window at a random place in each frame of the time. A copy says the same as the original.
///
/// A window that reaches beyond its frame's end continues at the frame's beginning. So each moment is in a window with
/// the same probability, the duty, whatever period a program has. (With windows at a fixed distance a loop of just that
/// period could be missed altogether.) What runs between two safe points is seen if its beginning is in a window.
///
/// Times are absolute, in nanoseconds of any clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    frame: u64,
    window: u64,
    seed: u64,
    phase: u64,
}

/// What a [`Schedule`] says for a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Whether a window is open.
    pub on: bool,
    /// The number of the frame, and of its window.
    pub window: u64,
    /// When the next window opens or, if one is open, when it closes or is followed by the next frame's.
    pub until: u64,
}

impl Schedule {
    /// Windows that take up the part `duty`, in `0.0..=1.0`, of each frame. Another seed draws everything anew: where
    /// frames begin, their windows and the groups.
    pub fn new(frame: Duration, duty: f64, seed: u64) -> Self {
        debug_assert!((0.0..=1.0).contains(&duty));
        let frame = u64::try_from(frame.as_nanos()).unwrap_or(u64::MAX).max(1);
        let window = ((frame as f64 * duty) as u64).clamp(1, frame);
        Self { frame, window, seed, phase: below(mix(seed), frame) }
    }

    /// How long a window is, in nanoseconds.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// The state at `now`.
    pub fn at(&self, now: u64) -> Moment {
        let time = now.saturating_add(self.phase);
        let (number, at) = (time / self.frame, time % self.frame);
        let start = self.start(number);
        let end = start + self.window;
        // Where the wrapped part ends; 0 if there is none.
        let wrapped = end.saturating_sub(self.frame);
        let (on, until) = if at < wrapped {
            (true, wrapped)
        } else if at < start {
            (false, start)
        } else if at < end {
            (true, end.min(self.frame))
        } else {
            let next = self.start(number + 1);
            (false, self.frame + if next + self.window > self.frame { 0 } else { next })
        };
        Moment { on, window: number, until: now.saturating_add(until - at) }
    }

    /// When the window with this number begins.
    pub fn opening(&self, window: u64) -> u64 {
        let begins = window.saturating_mul(self.frame).saturating_add(self.start(window));
        begins.saturating_sub(self.phase)
    }

    /// The number of the first window that begins after `now`.
    pub fn next_opening(&self, now: u64) -> u64 {
        let number = now.saturating_add(self.phase) / self.frame;
        if self.opening(number) > now { number } else { number + 1 }
    }

    /// The group of the window with this number. Of 16 windows in a row, each is in another one.
    pub fn group(&self, window: u64) -> WindowGroup {
        const COUNT: u64 = WindowGroup::COUNT as u64;
        // Fisher and Yates, with the digits of one number; 16! is less than 2^45.
        let mut digits = mix(self.seed ^ mix(!(window / COUNT)));
        let mut order: [u8; WindowGroup::COUNT] = std::array::from_fn(|number| number as u8);
        for last in (1..WindowGroup::COUNT).rev() {
            let choices = last as u64 + 1;
            order.swap(last, (digits % choices) as usize);
            digits /= choices;
        }
        WindowGroup::new(order[(window % COUNT) as usize].into())
    }

    /// Where in its frame a window begins.
    fn start(&self, window: u64) -> u64 {
        below(mix(self.seed ^ mix(window)), self.frame)
    }
}

/// SplitMix64: a number that looks random, from a counter.
pub fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A random number below `bound`.
fn below(random: u64, bound: u64) -> u64 {
    ((u128::from(random) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: u64 = 10_000_000;

    fn schedule(duty: f64, seed: u64) -> Schedule {
        Schedule::new(Duration::from_nanos(FRAME), duty, seed)
    }

    #[test]
    fn every_moment_is_as_likely_to_be_in_a_window() {
        const SEEDS: u64 = 20_000;
        for now in [0, 1_234_567, 5 * FRAME, 3_600_000_000_000] {
            let open = (0..SEEDS).filter(|&seed| schedule(0.1, seed).at(now).on).count();
            assert!((1_800..2_200).contains(&open), "{open} of {SEEDS} at {now}");
        }
    }

    #[test]
    fn a_period_of_the_program_makes_no_difference() {
        let schedule = schedule(0.1, 3);
        for period in [FRAME, FRAME / 2, 3 * FRAME] {
            let open = (0..20_000).filter(|step| schedule.at(step * period).on).count();
            assert!((1_800..2_200).contains(&open), "{open} with period {period}");
        }
    }

    #[test]
    fn each_frame_has_one_window_of_the_same_length() {
        let schedule = schedule(0.1, 5);
        let mut lengths = std::collections::BTreeMap::<u64, u64>::new();
        let mut now = 0;
        while now < 1_000 * FRAME {
            let moment = schedule.at(now);
            assert!(moment.until > now);
            if moment.on {
                *lengths.entry(moment.window).or_default() += moment.until - now;
            }
            now = moment.until;
        }
        lengths.pop_first();
        lengths.pop_last();
        assert!(lengths.len() >= 997 && lengths.values().all(|&length| length == FRAME / 10));
    }

    #[test]
    fn the_state_stays_as_it_is_until_the_time_given() {
        let schedule = schedule(0.3, 7);
        let mut now = 1_000;
        for _ in 0..1_000 {
            let moment = schedule.at(now);
            let last = schedule.at(moment.until - 1);
            assert_eq!((last.on, last.until), (moment.on, moment.until));
            let next = schedule.at(moment.until);
            assert!(next.on != moment.on || (next.on && next.window != moment.window));
            now = moment.until;
        }
    }

    #[test]
    fn a_whole_duty_is_always_on() {
        let schedule = schedule(1.0, 1);
        assert!((0..100).all(|step| schedule.at(step * FRAME / 3).on));
    }

    #[test]
    fn sixteen_windows_are_in_sixteen_groups_in_changing_order() {
        let schedule = schedule(0.1, 9);
        let orders: Vec<Vec<usize>> = (0..100)
            .map(|block| (0..16).map(|window| schedule.group(block * 16 + window).number()).collect())
            .collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..16).collect::<Vec<_>>());
        }
        assert!(orders.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn another_seed_draws_other_windows_and_groups() {
        let (one, other) = (schedule(0.1, 1), schedule(0.1, 2));
        assert_ne!(one.at(0).until, other.at(0).until);
        assert!((0..16).any(|window| one.group(window) != other.group(window)));
    }

    #[test]
    fn windows_begin_where_they_are_open() {
        let schedule = schedule(0.1, 11);
        for window in 1..1_000 {
            let begins = schedule.opening(window);
            assert_eq!((schedule.at(begins).on, schedule.at(begins).window), (true, window));
            assert_eq!((schedule.next_opening(begins - 1), schedule.next_opening(begins)), (window, window + 1));
        }
    }
}
