//! Windows in which samples are taken more densely; see [`windows`](crate::windows).
//!
//! Outside windows nothing is different. In a window events are selected with the rate divided by the duty, so that the
//! probability of a sample is the rate, times what windows cover more or less than they should. Where that takes too
//! much time it is less.

use super::Reservoir;
use crate::window_group::WindowGroup;
use crate::windows::{Budget, Exposure, Interval, MOST_TAKEN, Segment};
use std::sync::atomic::{AtomicU64, Ordering};

/// How windows go.
#[derive(Debug)]
pub struct Windows {
    exposure: Exposure,
    budget: Budget,
    timer: fn() -> Timing,
    /// What the hook has taken, for the timer.
    hook_time: &'static AtomicU64,
    open: Option<Open>,
    /// Up to when events that were not in a window have been added, by the monotonic clock.
    unseen_until: u64,
    /// What the timer said when the last window closed, and the VM's count of allocations if that can be compared.
    last: Option<(Timing, Option<u64>)>,
}

/// What the timer says that opens and closes windows. All are in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timing {
    /// The program's CPU time while it was at work, without what the hook took.
    pub elapsed: u64,
    /// For how long of that it wanted a window to be open.
    pub wanted: u64,
    /// The program's CPU time since the open window has begun to wait for a safe point at which to end.
    pub overdue: u64,
}

/// The open window.
#[derive(Debug, Clone, Copy)]
struct Open {
    group: WindowGroup,
    /// The CPU time when it opened, the monotonic time, the hook's time and the events counted until then.
    since: u64,
    began: u64,
    hook_time: u64,
    counted: u64,
    /// For how many nanoseconds samples have been taken in it, and would have been if all events were selected.
    sampling: u64,
    demand: f64,
    /// What the hook is taken to cost per event, apart from those.
    cost: f64,
}

impl Open {
    /// What the hook has taken for so many events up to `now`, by the monotonic clock, in nanoseconds. Not nearly all
    /// of the time: a window whose objects are taken to cost more than they do would hardly end.
    fn taken(&self, events: u64, now: u64) -> u64 {
        let other = now.saturating_sub(self.began).saturating_sub(self.sampling);
        self.sampling + (events as f64 * self.cost).min(MOST_TAKEN * other as f64) as u64
    }
}

/// The longest that taking a sample is believed to have needed, in nanoseconds: if it has taken longer, the thread was
/// interrupted.
const LONGEST_SAMPLE: u64 = 50_000;

/// What the hook takes for an event before a window that is ready, compared with what it seems to take for one in the
/// window: that contains what samples cost beyond the time for which they are taken. (With Ruby 4.0.5 it was 16 ns with
/// hardly any samples, and seemed to be 22 ns where 2 % of the events were sampled.)
const UNSEEN: f64 = 0.7;

/// Steps of probabilities per factor of two: 1.1 % each. There are so few different ones for each group, and halving
/// leads from one to another.
const STEPS: f64 = 64.0;
/// The least probability is 2^-48, so that the table has room for all of them, for each group.
const MOST_STEPS: f64 = 48.0 * STEPS;

impl Windows {
    /// Windows that cover the part `duty` of the time, with samples that take what `budget` allows, and a hook that is
    /// expected to cost `cost` nanoseconds per event. `timer` is called when windows close. `hook_time` is kept at the
    /// nanoseconds that the hook has taken so far: a window's end is to be delayed by them.
    pub fn new(duty: f64, budget: Budget, cost: f64, timer: fn() -> Timing, hook_time: &'static AtomicU64) -> Self {
        Self { exposure: Exposure::new(duty, cost), budget, timer, hook_time, open: None, unseen_until: 0, last: None }
    }

    /// Whether both were made alike.
    fn is_like(&self, other: &Self) -> bool {
        self.exposure.is_like(&other.exposure) && self.budget.is_like(&other.budget)
    }

    /// The part of the events in a window that are selected, if the rate is that.
    fn density(&self, rate: f64) -> f64 {
        (rate / self.exposure.duty()).min(self.budget.density())
    }
}

impl Reservoir {
    /// Allows windows, or no longer. If they are to be as those before, these go on, with what they have learned. Until
    /// one is opened, events are selected as without them.
    pub fn use_windows(&mut self, windows: Option<Windows>) {
        self.abandon_window();
        if !windows.as_ref().is_some_and(|new| self.windows.as_ref().is_some_and(|old| old.is_like(new))) {
            self.windows = windows.map(Box::new);
        }
    }

    /// What windows have covered so far, if they are used.
    pub fn exposure(&self) -> Option<&Exposure> {
        self.windows.as_ref().map(|windows| &windows.exposure)
    }

    /// The probability with which an event becomes a sample now, on average over windows if they are used.
    pub fn effective_rate(&self) -> f64 {
        let rate = self.rate();
        self.windows.as_ref().map_or(rate, |windows| rate.min(windows.budget.density() * windows.exposure.duty()))
    }

    /// Whether a window is open.
    #[inline]
    pub fn is_window_open(&self) -> bool {
        self.windows.as_ref().is_some_and(|windows| windows.open.is_some())
    }

    /// Opens a window of this group, just before events are counted again. `since` is the program's CPU time at which
    /// it began, `now` the time by the monotonic clock, both in nanoseconds. One that is open must be closed before.
    /// Does nothing if windows are not used.
    pub fn open_window(&mut self, group: WindowGroup, since: u64, now: u64) {
        debug_assert!(!self.is_window_open());
        let Some(windows) = &mut self.windows else { return };
        windows.open = Some(Open {
            group,
            since,
            began: now,
            hook_time: windows.hook_time.load(Ordering::Relaxed),
            counted: self.sampler.counted(),
            sampling: 0,
            demand: 0.0,
            cost: windows.exposure.cost(),
        });
        self.tune();
    }

    /// Adds what the hook has taken for so many events that have come before a window that is ready, up to `now` by the
    /// monotonic clock, also if the one before has ended and was not closed yet. As in windows that is not nearly all
    /// of the time: a window would hardly begin if events were taken to cost more than they do.
    pub fn add_unseen(&mut self, events: u64, now: u64) {
        let Some(windows) = &mut self.windows else { return };
        let most = MOST_TAKEN * now.saturating_sub(windows.unseen_until) as f64;
        windows.unseen_until = now;
        let time = (events as f64 * windows.exposure.cost() * UNSEEN).min(most) as u64;
        if let Some(open) = &mut windows.open {
            open.hook_time += time;
        }
        windows.hook_time.fetch_add(time, Ordering::Relaxed);
    }

    /// Adds the time for which a sample was taken, by the monotonic clock in nanoseconds, and tells the timer.
    pub fn add_sampling_time(&mut self, began: u64, ended: u64) {
        let density = self.sampler.rate();
        if let Some(open) = self.windows.as_mut().and_then(|windows| windows.open.as_mut()) {
            let time = ended.saturating_sub(began).min(LONGEST_SAMPLE);
            open.sampling += time;
            open.demand += time as f64 / density;
        }
        self.publish_hook_time(ended);
    }

    /// Tells the timer what the hook has taken up to `now`, by the monotonic clock, and returns it, in nanoseconds.
    #[inline]
    pub fn publish_hook_time(&self, now: u64) -> u64 {
        let Some(windows) = &self.windows else { return 0 };
        let Some(open) = windows.open else { return windows.hook_time.load(Ordering::Relaxed) };
        // Where several threads count at once, or once counting has stopped, the count may seem to go back.
        let events = self.sampler.counted().saturating_sub(open.counted);
        let time = open.hook_time + open.taken(events, now);
        windows.hook_time.store(time, Ordering::Relaxed);
        time
    }

    /// Closes the open window, if there is one, once events are no longer counted, or to open the next one at once.
    /// It was prolonged by what was published of the hook's time. `ended` is the program's CPU time at which events
    /// were last counted, in nanoseconds; `allocated` is the VM's own count of all events, whether in windows or not.
    /// Returns for how many nanoseconds it was overdue.
    pub fn close_window(&mut self, ended: u64, allocated: u64) -> u64 {
        let counted = self.sampler.counted();
        let Some(windows) = &mut self.windows else { return 0 };
        let Some(open) = windows.open.take() else { return 0 };
        let timing = (windows.timer)();
        let segment = Segment {
            group: open.group,
            objects: counted.saturating_sub(open.counted),
            on_time: ended.saturating_sub(open.since),
            overdue: timing.overdue,
            sampling: open.sampling,
            prolonged: windows.hook_time.load(Ordering::Relaxed).saturating_sub(open.hook_time),
        };
        if let Some((last, count)) = windows.last.replace((timing, Some(allocated))) {
            let elapsed = timing.elapsed.saturating_sub(last.elapsed);
            windows.budget.record(elapsed as f64, open.demand);
            if let Some(count) = count {
                let wanted = timing.wanted.saturating_sub(last.wanted);
                let interval = Interval { elapsed, wanted, allocated: allocated.saturating_sub(count) };
                windows.exposure.record(segment, interval);
            }
        }
        self.tune();
        segment.overdue
    }

    /// Learns nothing of the hook from the time since the last window when the open one closes: the VM's count cannot
    /// be compared with the last one.
    pub fn forget_interval(&mut self) {
        if let Some((_, count)) = self.windows.as_mut().and_then(|windows| windows.last.as_mut()) {
            *count = None;
        }
    }

    /// Closes the open window without learning from it or from the time since the one before: after a fork, whose clock
    /// is another one, or when windows pause.
    pub fn abandon_window(&mut self) {
        if let Some(windows) = &mut self.windows {
            (windows.open, windows.last) = (None, None);
            self.tune();
        }
    }

    /// Selects with the current rate: in a window more densely, outside as it is.
    pub(super) fn tune(&mut self) {
        let rate = self.rate();
        let open = self.windows.as_ref().and_then(|windows| windows.open.map(|open| (open.group, windows)));
        let (selected, id) = match open {
            None => (rate, None),
            Some((group, windows)) => {
                let selected = windows.density(rate);
                let rounded = rounded(selected * windows.exposure.share(), self.sampler.uniform());
                (selected, self.rates.id(rounded, Some(group)))
            }
        };
        // There is room in the table for all steps of all groups. Otherwise the rate would be the best guess.
        self.current = id.unwrap_or(self.rate);
        self.sampler.set_rate(selected);
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
    use super::super::{Candidate, ClassId, LiveSample};
    use super::*;
    use crate::readers::Readers;
    use crate::stack_tree::StackId;
    use std::cell::Cell;
    use std::sync::Mutex;

    /// Seconds.
    const LATER: u64 = 10_000_000_000;

    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(0) };
    }

    /// One for each test. All stay reachable: a sanitizer would take them for lost otherwise.
    fn hook_time() -> &'static AtomicU64 {
        static ALL: Mutex<Vec<&'static AtomicU64>> = Mutex::new(Vec::new());
        let hook_time = Box::leak(Box::default());
        ALL.lock().unwrap().push(hook_time);
        hook_time
    }

    /// With windows for a tenth of the time, of which the first is open, and a hook of 20 ns.
    fn in_window(rate: f64) -> Reservoir {
        let mut reservoir = Reservoir::new(rate, usize::MAX, 1);
        reservoir.use_windows(Some(Windows::new(0.1, Budget::new(1.0), 20.0, Timing::default, hook_time())));
        NOW.set(0);
        reservoir.open_window(WindowGroup::new(7), NOW.get(), NOW.get());
        reservoir
    }

    fn allocate(reservoir: &mut Reservoir, addresses: std::ops::Range<u64>) {
        for address in addresses {
            match reservoir.countdown().left() {
                0 => {
                    let candidate = reservoir.select();
                    let sample = LiveSample::new(address, StackId::EMPTY, ClassId(0), 0, Readers::NONE);
                    assert!(reservoir.insert(candidate, sample, drop).is_none());
                }
                left => reservoir.countdown().pass(left),
            }
        }
    }

    /// What the hook has taken, long after.
    fn hook_takes(reservoir: &Reservoir) -> u64 {
        reservoir.publish_hook_time(LATER)
    }

    fn close(weight: f64, expected: f64) {
        assert!((weight / expected - 1.0).abs() < 0.012, "{weight} instead of {expected}");
    }

    #[test]
    fn samples_in_a_window_stand_for_what_it_has_missed() {
        let mut reservoir = in_window(0.1);
        allocate(&mut reservoir, 0..1_000);
        // Selected with probability 1.
        assert_eq!(reservoir.live().len(), 1_000);
        for sample in reservoir.live().samples() {
            close(reservoir.weight(sample), 10.0);
            assert_eq!(reservoir.window(sample), Some(WindowGroup::new(7)));
        }
    }

    #[test]
    fn outside_windows_nothing_is_different() {
        let mut reservoir = in_window(0.1);
        reservoir.close_window(NOW.get(), 0);
        allocate(&mut reservoir, 0..1_000);
        assert!((50..150).contains(&reservoir.live().len()));
        let sample = reservoir.live().samples()[0];
        assert_eq!((reservoir.weight(&sample), reservoir.window(&sample)), (10.0, None));
    }

    #[test]
    fn the_hook_takes_time_only_in_windows() {
        let mut reservoir = in_window(0.01);
        allocate(&mut reservoir, 0..1_000);
        assert_eq!(hook_takes(&reservoir), 20_000);
        reservoir.close_window(NOW.get(), 0);
        allocate(&mut reservoir, 1_000..2_000);
        assert_eq!(hook_takes(&reservoir), 20_000);
        reservoir.open_window(WindowGroup::new(8), NOW.get(), NOW.get());
        allocate(&mut reservoir, 2_000..2_050);
        assert_eq!(hook_takes(&reservoir), 21_000);
        reservoir.abandon_window();
        assert_eq!(hook_takes(&reservoir), 21_000);
    }

    #[test]
    fn what_the_hook_takes_for_events_that_it_passes_over_is_its_time() {
        let mut reservoir = in_window(0.01);
        reservoir.add_unseen(50, LATER);
        assert_eq!(hook_takes(&reservoir), 700);
        reservoir.close_window(NOW.get(), 0);
        reservoir.add_unseen(50, 2 * LATER);
        reservoir.open_window(WindowGroup::new(8), NOW.get(), NOW.get());
        allocate(&mut reservoir, 0..10);
        assert_eq!(hook_takes(&reservoir), 1_600);
    }

    #[test]
    fn events_that_it_passes_over_seem_to_take_most_of_the_time_at_most() {
        let mut reservoir = in_window(0.01);
        reservoir.close_window(NOW.get(), 0);
        for now in [1_000_000, 1_001_000, 1_002_000] {
            reservoir.add_unseen(1_000, now);
        }
        assert_eq!(hook_takes(&reservoir), 14_000 + 800 + 800);
    }

    #[test]
    fn what_samples_take_is_the_hooks_time_in_windows() {
        let mut reservoir = in_window(0.01);
        reservoir.add_sampling_time(1_000, 4_000);
        assert_eq!(hook_takes(&reservoir), 3_000);
        reservoir.close_window(NOW.get(), 0);
        reservoir.add_sampling_time(1_000, 4_000);
        assert_eq!(hook_takes(&reservoir), 3_000);
    }

    #[test]
    fn what_an_interrupted_sample_takes_is_bounded() {
        let mut reservoir = in_window(0.01);
        reservoir.add_sampling_time(0, u64::MAX);
        assert_eq!(hook_takes(&reservoir), LONGEST_SAMPLE);
    }

    #[test]
    fn a_hook_that_seems_to_take_more_time_than_there_is_takes_most_of_it() {
        let mut reservoir = in_window(0.01);
        reservoir.add_sampling_time(0, 5_000);
        allocate(&mut reservoir, 0..1_000);
        assert_eq!(reservoir.publish_hook_time(15_000), 5_000 + 8_000);
        assert_eq!(reservoir.publish_hook_time(40_000), 5_000 + 20_000);
    }

    #[test]
    fn rates_change_in_the_middle_of_a_window() {
        let mut reservoir = in_window(0.1);
        allocate(&mut reservoir, 0..100);
        reservoir.set_rate(0.05, true);
        assert_eq!(reservoir.rate(), 0.05);
        allocate(&mut reservoir, 100..300);
        reservoir.halve(drop);
        assert_eq!(reservoir.rate(), 0.025);
        for sample in reservoir.live().samples() {
            close(reservoir.weight(sample), if sample.address < 100 { 20.0 } else { 40.0 });
        }
        reservoir.close_window(NOW.get(), 0);
        allocate(&mut reservoir, 300..1_000);
        let last = reservoir.live().samples().last().copied().unwrap();
        assert_eq!(reservoir.weight(&last), 40.0);
    }

    /// With windows for a tenth of the time, in which samples would take too much of it: a fifth of what is asked for
    /// is selected. One is open.
    fn on_a_budget() -> Reservoir {
        let mut reservoir = Reservoir::new(0.05, usize::MAX, 1);
        let timer = || Timing { elapsed: NOW.get(), ..Timing::default() };
        let windows = Windows::new(0.1, Budget::new(0.001), 20.0, timer, hook_time());
        reservoir.use_windows(Some(windows));
        assert_eq!(reservoir.effective_rate(), 0.05);
        for window in 1..=100 {
            NOW.set(window * 10_000_000);
            reservoir.open_window(WindowGroup::new(7), NOW.get(), NOW.get());
            let density = reservoir.effective_rate() / 0.1;
            // A tenth of a millisecond if all were samples. There are ten microseconds in each ten milliseconds.
            reservoir.add_sampling_time(0, (density * 1e5) as u64);
            reservoir.close_window(NOW.get(), 0);
        }
        reservoir.open_window(WindowGroup::new(7), NOW.get(), NOW.get());
        reservoir
    }

    /// Objects per sample of that.
    fn weight_on_a_budget(reservoir: &Reservoir) -> f64 {
        // By the timer of these tests windows cover less than they should.
        10.0 / reservoir.exposure().map_or(0.0, Exposure::share)
    }

    #[test]
    fn samples_that_take_too_much_time_become_fewer_and_stand_for_more() {
        let mut reservoir = on_a_budget();
        assert!((reservoir.effective_rate() - 0.01).abs() < 1e-4, "{}", reservoir.effective_rate());
        allocate(&mut reservoir, 0..10_000);
        assert!((800..1_200).contains(&reservoir.live().len()), "{}", reservoir.live().len());
        let expected = weight_on_a_budget(&reservoir);
        reservoir.live().samples().iter().for_each(|sample| close(reservoir.weight(sample), expected));
    }

    #[test]
    fn the_effective_rate_is_that_of_windows_as_long_as_they_are_used() {
        let mut reservoir = on_a_budget();
        assert_eq!((reservoir.effective_rate(), reservoir.period()), (0.01, 100));
        reservoir.use_windows(None);
        assert_eq!((reservoir.effective_rate(), reservoir.period()), (0.05, 20));
    }

    #[test]
    fn windows_as_before_go_on_with_what_they_have_learned() {
        let mut reservoir = on_a_budget();
        let new = |duty, most| Some(Windows::new(duty, Budget::new(most), 20.0, Timing::default, hook_time()));
        reservoir.use_windows(new(0.1, 0.001));
        assert_eq!(reservoir.effective_rate(), 0.01);
        reservoir.use_windows(new(0.1, 0.002));
        assert_eq!(reservoir.effective_rate(), 0.05);
    }

    #[test]
    fn what_is_halved_before_it_is_a_sample_stands_for_twice_as_much() {
        let mut reservoir = on_a_budget();
        let expected = 2.0 * weight_on_a_budget(&reservoir);
        let candidate = reservoir.select();
        reservoir.halve(drop);
        // Heads or tails.
        for address in 0..64 {
            let Candidate { halvings, rate } = candidate;
            let sample = LiveSample::new(address, StackId::EMPTY, ClassId(0), 0, Readers::NONE);
            assert!(reservoir.insert(Candidate { halvings, rate }, sample, drop).is_none());
        }
        assert!((16..48).contains(&reservoir.live().len()), "{}", reservoir.live().len());
        reservoir.live().samples().iter().for_each(|sample| close(reservoir.weight(sample), expected));
    }

    #[test]
    fn a_round_keeps_the_probability_of_the_open_window() {
        let mut reservoir = in_window(0.1);
        reservoir.begin_round();
        reservoir.end_round();
        allocate(&mut reservoir, 0..10);
        reservoir.live().samples().iter().for_each(|sample| close(reservoir.weight(sample), 10.0));
    }

    #[test]
    fn an_abandoned_window_is_none() {
        let mut reservoir = in_window(0.1);
        reservoir.abandon_window();
        assert!(!reservoir.is_window_open());
        allocate(&mut reservoir, 0..1_000);
        assert!(reservoir.live().samples().iter().all(|sample| reservoir.window(sample).is_none()));
    }

    #[test]
    fn a_forgotten_interval_teaches_nothing() {
        // What the hook seems to cost if the VM counts a million objects more in every other interval.
        let cost = |forgotten: bool| {
            let mut reservoir = in_window(0.1);
            let mut allocated = 0;
            for window in 0..200 {
                allocate(&mut reservoir, window * 100..(window + 1) * 100);
                NOW.set(NOW.get() + 1_000_000);
                allocated += 1_000;
                if window % 2 == 0 {
                    allocated += 1_000_000;
                    if forgotten {
                        reservoir.forget_interval();
                    }
                }
                reservoir.publish_hook_time(NOW.get());
                reservoir.close_window(NOW.get(), allocated);
                NOW.set(NOW.get() + 9_000_000);
                reservoir.open_window(WindowGroup::new(window as usize % 16), NOW.get(), NOW.get());
            }
            reservoir.exposure().map_or(0.0, Exposure::cost)
        };
        assert!((cost(true) - 20.0).abs() < 10.0, "{}", cost(true));
        assert!(cost(false) > 100.0, "{}", cost(false));
    }

    #[test]
    fn a_window_can_close_once_sampling_has_stopped() {
        let mut reservoir = in_window(0.1);
        reservoir.close_window(NOW.get(), 0);
        reservoir.open_window(WindowGroup::new(8), NOW.get(), NOW.get());
        allocate(&mut reservoir, 0..100);
        reservoir.countdown().stop();
        NOW.set(2_000_000);
        assert_eq!(reservoir.close_window(NOW.get(), 1_000), 0);
        reservoir.live().samples().iter().for_each(|sample| close(reservoir.weight(sample), 10.0));
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
