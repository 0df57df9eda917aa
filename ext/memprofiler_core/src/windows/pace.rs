//! How much longer windows last for what the hook takes.

use super::Moment;

/// How much longer a window lasts than it seems: the schedule's clock stands still for what the hook takes.
///
/// Who waits for what seems to be left has to wait again for what the hook has taken meanwhile, and so on. So the rest
/// of a window is taken to be like its beginning. A new one is taken to be like the one in which the hook has taken the least
/// lately: if a window were too long where few objects are allocated, these would seem to be more.
#[derive(Debug)]
pub struct Pace {
    open: Option<Open>,
    /// The least that the hook has taken in a window of this block, and of the block before, in nanoseconds per
    /// nanosecond of the schedule's clock.
    least: [f64; 2],
    /// How many windows of this block have ended.
    ended: u32,
}

/// The window in which the timer was awake last.
#[derive(Debug, Clone, Copy)]
struct Open {
    window: u64,
    /// The schedule's clock and the hook's time when the timer was first awake in it.
    began: u64,
    hook_time: u64,
}

/// The most that a hook is taken to take, in the same unit: more is an error of clocks.
const MOST: f64 = 4.0;
/// Windows per block. When a program begins to allocate less, a window or two are too long: few compared with these.
const BLOCK: u32 = 64;

impl Default for Pace {
    fn default() -> Self {
        Self { open: None, least: [0.0; 2], ended: 0 }
    }
}

impl Pace {
    /// For how many nanoseconds the schedule's clock will stand still for each nanosecond that is left of a moment.
    /// `now` is what that clock says, `hook_time` for how long it has stood still for the hook in all.
    pub fn slowdown(&mut self, moment: Moment, now: u64, hook_time: u64) -> f64 {
        if let Some(open) = self.open {
            let [passed, taken] = [now.saturating_sub(open.began), hook_time.saturating_sub(open.hook_time)];
            let slowdown = (taken as f64 / passed.max(1) as f64).min(MOST);
            if moment.on && moment.window == open.window {
                return slowdown;
            }
            self.end(slowdown);
        }
        if !moment.on {
            return 0.0;
        }
        self.open = Some(Open { window: moment.window, began: now, hook_time });
        // Neither has a window yet at first.
        self.least[0].min(self.least[1]).min(MOST)
    }

    fn end(&mut self, slowdown: f64) {
        self.open = None;
        self.least[0] = self.least[0].min(slowdown);
        self.ended += 1;
        if self.ended >= BLOCK {
            self.least = [f64::INFINITY, self.least[0]];
            self.ended = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A moment in window `window`, or between windows if there is none.
    fn moment(window: Option<u64>, until: u64) -> Moment {
        Moment { on: window.is_some(), window: window.unwrap_or(0), until }
    }

    /// Windows of 100 ns, in which the hook takes `taken` ns.
    fn pass(pace: &mut Pace, windows: u32, taken: u64) {
        for window in 0..u64::from(windows) {
            pace.slowdown(moment(Some(window), 100), 0, 0);
            pace.slowdown(moment(None, 1_000), 100, taken);
        }
    }

    #[test]
    fn between_windows_the_clock_does_not_stand_still() {
        let mut pace = Pace::default();
        pass(&mut pace, 2 * BLOCK, 50);
        assert_eq!(pace.slowdown(moment(None, 1_000), 300, 0), 0.0);
    }

    #[test]
    fn the_first_window_is_as_long_as_it_seems() {
        assert_eq!(Pace::default().slowdown(moment(Some(1), 1_000), 400, 0), 0.0);
    }

    #[test]
    fn the_rest_of_a_window_is_like_its_beginning() {
        let mut pace = Pace::default();
        pace.slowdown(moment(Some(1), 1_000), 400, 50);
        assert_eq!(pace.slowdown(moment(Some(1), 1_000), 600, 150), 0.5);
        // The next one, which follows at once, is not.
        assert_eq!(pace.slowdown(moment(Some(2), 2_000), 1_000, 350), 0.0);
    }

    #[test]
    fn windows_that_are_all_alike_are_known_in_advance() {
        let mut pace = Pace::default();
        pass(&mut pace, 2 * BLOCK, 50);
        assert_eq!(pace.slowdown(moment(Some(1), 100), 0, 0), 0.5);
    }

    #[test]
    fn the_emptiest_window_is_remembered() {
        let mut pace = Pace::default();
        pass(&mut pace, 2 * BLOCK, 50);
        pass(&mut pace, 1, 10);
        pass(&mut pace, 2 * BLOCK - 2, 50);
        assert_eq!(pace.slowdown(moment(Some(1), 100), 0, 0), 0.1);
    }

    #[test]
    fn clocks_that_go_backwards_are_no_reason_to_fail() {
        let mut pace = Pace::default();
        pace.slowdown(moment(Some(1), 100), 50, 50);
        assert_eq!(pace.slowdown(moment(Some(1), 100), 200, 0), 0.0);
        assert_eq!(pace.slowdown(moment(Some(1), u64::MAX), 0, u64::MAX), MOST);
    }
}
