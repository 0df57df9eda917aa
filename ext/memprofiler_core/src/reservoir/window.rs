//! Windows in which samples are taken more densely; see [`windows`](crate::windows).
//!
//! Outside windows nothing is different. In a window events are selected with the rate divided by the duty. Which
//! probability its samples have is known at its end, or as soon as one of them is removed or read: until it is settled
//! their probability is [`RateId::UNSETTLED`].

use super::Reservoir;
use super::rates::RateId;
use crate::window_group::WindowGroup;
use crate::windows::{Exposure, Interval, Segment};

/// How windows go.
#[derive(Debug)]
pub struct Windows {
    exposure: Exposure,
    clock: fn() -> u64,
    timer: fn() -> Timing,
    open: Option<Open>,
    /// What the timer said, and the VM's count of allocations, when the last window closed.
    last: Option<(Timing, u64)>,
}

/// What the timer says that opens and closes windows. All are in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timing {
    /// How long it has been at work so far.
    pub elapsed: u64,
    /// For how long of that it wanted a window to be open.
    pub wanted: u64,
    /// For how long the open window has now waited for a safe point at which to end.
    pub overdue: u64,
}

/// The open window.
#[derive(Debug, Clone, Copy)]
struct Open {
    group: WindowGroup,
    /// The CPU time when it opened, and the events counted until then.
    since: u64,
    counted: u64,
    /// How dense it was taken to become, when samples last left it.
    foreseen: Option<f64>,
}

/// Steps of probabilities per factor of two: 1.1 % each. There are so few different ones for each group, and halving
/// leads from one to another.
const STEPS: f64 = 64.0;
/// The least probability is 2^-48, so that the table has room for all of them, for each group.
const MOST_STEPS: f64 = 48.0 * STEPS;

impl Windows {
    /// Windows that cover the part `duty` of the time, with a hook that is expected to cost `hook_cost` nanoseconds per
    /// event. `clock` returns the CPU time of the process in nanoseconds; it and `timer` are called when windows open
    /// and close, and when samples leave an open window.
    pub fn new(duty: f64, hook_cost: f64, clock: fn() -> u64, timer: fn() -> Timing) -> Self {
        Self { exposure: Exposure::new(duty, hook_cost), clock, timer, open: None, last: None }
    }
}

impl Reservoir {
    /// Allows windows, or no longer. Until one is opened, events are selected as without them.
    pub fn use_windows(&mut self, windows: Option<Windows>) {
        self.abandon_window();
        self.windows = windows.map(Box::new);
    }

    /// What windows have covered so far, if they are used.
    pub fn exposure(&self) -> Option<&Exposure> {
        self.windows.as_ref().map(|windows| &windows.exposure)
    }

    /// Whether a window is open.
    #[inline]
    pub fn is_window_open(&self) -> bool {
        self.windows.as_ref().is_some_and(|windows| windows.open.is_some())
    }

    /// Opens a window of this group, just before events are counted again. One that is open must be closed before. Does
    /// nothing if windows are not used.
    pub fn open_window(&mut self, group: WindowGroup) {
        debug_assert!(!self.is_window_open());
        let Some(windows) = &mut self.windows else { return };
        windows.open = Some(Open { group, since: (windows.clock)(), counted: self.sampler.counted(), foreseen: None });
        self.tune_sampler();
    }

    /// Closes the open window, if there is one, once events are no longer counted, or to open the next one at once.
    /// `allocated` is the VM's own count of all events, whether in windows or not. Returns for how many nanoseconds it was
    /// overdue.
    pub fn close_window(&mut self, allocated: u64) -> u64 {
        let Some(segment) = self.segment() else { return 0 };
        // What is learned must be what samples are weighed with.
        let in_window = self.windows.as_ref().map_or(1.0, |windows| windows.exposure.probability(&segment));
        self.settle_with(segment.group, in_window);
        let Some(windows) = &mut self.windows else { return 0 };
        windows.open = None;
        let timing = (windows.timer)();
        if let Some((last, count)) = windows.last.replace((timing, allocated)) {
            let interval = Interval {
                elapsed: timing.elapsed.saturating_sub(last.elapsed),
                wanted: timing.wanted.saturating_sub(last.wanted),
                allocated: allocated.saturating_sub(count),
            };
            windows.exposure.record(segment, interval);
        }
        self.tune_sampler();
        segment.overdue
    }

    /// Closes the open window without learning from it or from the time since the one before: after a fork, whose CPU
    /// time begins anew, or when windows pause.
    pub fn abandon_window(&mut self) {
        let Some(windows) = &mut self.windows else { return };
        windows.last = None;
        let Some(open) = &mut windows.open else { return };
        // In the future: its time is unknown.
        open.since = u64::MAX;
        self.settle();
        if let Some(windows) = &mut self.windows {
            windows.open = None;
        }
        self.tune_sampler();
    }

    /// Gives the samples of the open window so far their final probability.
    #[inline]
    pub fn settle(&mut self) {
        if self.unsettled > 0 {
            self.settle_all();
        }
    }

    /// Does so, and returns that probability.
    pub(super) fn settle_all(&mut self) -> RateId {
        let segment = self.segment();
        let Some((segment, windows)) = segment.zip(self.windows.as_mut()) else { return self.rate };
        let in_window = windows.exposure.probability_so_far(&segment);
        let foreseen = windows.exposure.foresee(&segment);
        windows.open.iter_mut().for_each(|open| open.foreseen = Some(foreseen));
        self.settle_with(segment.group, in_window)
    }

    /// What the open window has held so far; None if none is open.
    fn segment(&self) -> Option<Segment> {
        let windows = self.windows.as_ref()?;
        let open = windows.open?;
        // Where several threads count at once, or once counting has stopped, the count may seem to go back.
        let objects = self.sampler.counted().saturating_sub(open.counted);
        let on_time = (windows.clock)().saturating_sub(open.since);
        Some(Segment {
            group: open.group,
            objects,
            on_time,
            overdue: (windows.timer)().overdue,
            foreseen: open.foreseen,
        })
    }

    /// Gives samples their probability: that of being selected in a window, times that of being in one.
    fn settle_with(&mut self, group: WindowGroup, in_window: f64) -> RateId {
        let rounded = rounded(self.sampler.rate() * in_window, self.sampler.uniform());
        let rate = self.rates.id(rounded, Some(group)).unwrap_or(self.rate);
        // They are the last ones, unless one has taken the place of another or some have left.
        for sample in self.live.samples_mut().rev() {
            if self.unsettled == 0 {
                break;
            }
            if !sample.rate.is_settled() {
                sample.rate = rate;
                self.unsettled -= 1;
            }
        }
        debug_assert_eq!(self.unsettled, 0);
        rate
    }

    /// Selects with the current rate: in a window more densely, outside as it is.
    pub(super) fn tune_sampler(&mut self) {
        let open = self.windows.as_ref().filter(|windows| windows.open.is_some());
        let duty = open.map_or(1.0, |windows| windows.exposure.duty());
        self.sampler.set_rate((self.rate() / duty).min(1.0));
    }
}

/// One of the two steps next to a probability, at random, such that the mean of their inverses is its inverse, since
/// estimates are sums of inverses.
fn rounded(probability: f64, uniform: f64) -> f64 {
    let step = (-probability.log2() * STEPS).floor().clamp(0.0, MOST_STEPS);
    let [upper, lower] = [step, step + 1.0].map(at_step);
    let up = (1.0 / lower - 1.0 / probability) / (1.0 / lower - 1.0 / upper);
    if uniform < up { upper } else { lower }
}

/// The probability at a step. Halving it leads to exactly that of another step.
fn at_step(step: f64) -> f64 {
    (-(step % STEPS) / STEPS).exp2() * (-(step / STEPS).floor()).exp2()
}

#[cfg(test)]
mod tests {
    use super::super::{ClassId, Departed, Fate, LiveSample};
    use super::*;
    use crate::readers::Readers;
    use crate::stack_tree::StackId;
    use std::cell::Cell;

    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(0) };
    }

    /// With windows for a tenth of the time, of which the first is open.
    fn in_window(rate: f64) -> Reservoir {
        let mut reservoir = Reservoir::new(rate, usize::MAX, 1);
        reservoir.use_windows(Some(Windows::new(0.1, 20.0, || NOW.get(), Timing::default)));
        NOW.set(0);
        reservoir.open_window(WindowGroup::new(7));
        reservoir
    }

    fn allocate(reservoir: &mut Reservoir, addresses: std::ops::Range<u64>) -> Vec<Departed> {
        let mut replaced = Vec::new();
        for address in addresses {
            match reservoir.countdown().left() {
                0 => {
                    let candidate = reservoir.select();
                    let sample = LiveSample::new(address, StackId::EMPTY, ClassId(0), 0, Readers::NONE);
                    replaced.extend(reservoir.insert(candidate, sample, drop));
                }
                left => reservoir.countdown().pass(left),
            }
        }
        replaced
    }

    fn close(weight: f64, expected: f64) {
        assert!((weight / expected - 1.0).abs() < 0.012, "{weight} instead of {expected}");
    }

    #[test]
    fn samples_in_a_window_stand_for_what_it_has_missed() {
        let mut reservoir = in_window(0.1);
        allocate(&mut reservoir, 0..1_000);
        // Selected with probability 1; the hook took half of the time.
        NOW.set(40_000);
        reservoir.close_window(10_000);
        assert_eq!(reservoir.live().len(), 1_000);
        for sample in reservoir.live().samples() {
            close(reservoir.weight(sample), 10.0 * (1.0 - 0.1 * 0.5) / 0.5);
            assert_eq!(reservoir.window(sample), Some(WindowGroup::new(7)));
        }
    }

    #[test]
    fn outside_windows_nothing_is_different() {
        let mut reservoir = in_window(0.1);
        reservoir.close_window(0);
        allocate(&mut reservoir, 0..1_000);
        assert!((50..150).contains(&reservoir.live().len()));
        let sample = reservoir.live().samples()[0];
        assert_eq!((reservoir.weight(&sample), reservoir.window(&sample)), (10.0, None));
    }

    #[test]
    fn a_sample_that_leaves_an_open_window_has_its_probability() {
        let leave: [fn(&mut Reservoir) -> Vec<Departed>; 4] = [
            |reservoir| reservoir.remove(40).into_iter().collect(),
            |reservoir| allocate(reservoir, 40..41),
            |reservoir| {
                let mut all = Vec::new();
                reservoir.drain(|departed| all.push(departed));
                all
            },
            |reservoir| {
                let mut all = Vec::new();
                reservoir.clear(false);
                allocate(reservoir, 0..50);
                reservoir.collect(true, |_, _| Fate::Dead, |departed| all.push(departed));
                all
            },
        ];
        for leave in leave {
            let mut reservoir = in_window(0.1);
            allocate(&mut reservoir, 0..50);
            NOW.set(1_000_000);
            let left = leave(&mut reservoir);
            assert!(!left.is_empty());
            for departed in left {
                close(departed.weight, 10.0);
                assert_eq!(departed.window, Some(WindowGroup::new(7)));
            }
            allocate(&mut reservoir, 100..110);
            NOW.set(2_000_000);
            reservoir.settle();
            assert!(reservoir.live().samples().iter().all(|sample| reservoir.weight(sample) < 11.0));
        }
    }

    #[test]
    fn rates_change_in_the_middle_of_a_window() {
        let mut reservoir = in_window(0.1);
        allocate(&mut reservoir, 0..100);
        NOW.set(1_000_000);
        reservoir.set_rate(0.05, true);
        assert_eq!(reservoir.rate(), 0.05);
        allocate(&mut reservoir, 100..300);
        reservoir.halve(drop);
        assert_eq!(reservoir.rate(), 0.025);
        NOW.set(2_000_000);
        reservoir.settle();
        for sample in reservoir.live().samples() {
            close(reservoir.weight(sample), if sample.address < 100 { 20.0 } else { 40.0 });
        }
        reservoir.close_window(0);
        allocate(&mut reservoir, 300..1_000);
        let last = reservoir.live().samples().last().copied().unwrap();
        assert_eq!(reservoir.weight(&last), 40.0);
    }

    #[test]
    fn an_abandoned_window_is_settled_without_its_time() {
        let mut reservoir = in_window(0.1);
        allocate(&mut reservoir, 0..100);
        reservoir.abandon_window();
        assert!(!reservoir.is_window_open());
        reservoir.live().samples().iter().for_each(|sample| close(reservoir.weight(sample), 10.0));
    }

    #[test]
    fn a_window_can_close_once_sampling_has_stopped() {
        let mut reservoir = in_window(0.1);
        reservoir.close_window(0);
        reservoir.open_window(WindowGroup::new(8));
        allocate(&mut reservoir, 0..100);
        reservoir.countdown().stop();
        NOW.set(2_000_000);
        reservoir.close_window(1_000);
        reservoir.live().samples().iter().for_each(|sample| close(reservoir.weight(sample), 10.0));
    }

    #[test]
    fn a_round_finds_only_samples_that_are_settled() {
        let mut reservoir = in_window(0.1);
        allocate(&mut reservoir, 0..10);
        reservoir.begin_round();
        allocate(&mut reservoir, 10..20);
        let due: Vec<_> = reservoir.live().samples().iter().filter(|sample| reservoir.is_due(sample)).collect();
        assert_eq!(due.len(), 10);
        due.iter().for_each(|sample| close(reservoir.weight(sample), 10.0));
    }

    #[test]
    fn rounded_probabilities_keep_the_mean_of_their_inverses() {
        for probability in [1.0, 0.999, 0.37, 0.01, 1.3e-7] {
            const COUNT: usize = 10_000;
            let weights = (0..COUNT).map(|draw| 1.0 / rounded(probability, (draw as f64 + 0.5) / COUNT as f64));
            let mean = weights.sum::<f64>() / COUNT as f64;
            assert!((mean * probability - 1.0).abs() < 1e-5, "{probability}: {mean}");
        }
    }

    #[test]
    fn half_of_a_rounded_probability_is_rounded() {
        for step in 0..10_000 {
            let step = f64::from(step);
            assert_eq!(at_step(step) / 2.0, at_step(step + STEPS));
        }
    }
}
