//! What windows covered.

use super::calibration::{Calibration, Seen};
use super::cost::probability;
use crate::window_group::WindowGroup;

/// Estimates with which probability a piece of the program's work is in a window, from earlier windows.
///
/// That is the part of the time for which the timer has wanted windows: the duty, unless a busy machine wakes it late.
/// It is smaller where the hook slows its own window down: where many objects are allocated, less of the program fits
/// in. The hook's cost per object is the one with which what windows saw adds up to the VM's own count of allocations
/// (the unknown is solved for, as in a calibration estimate). So a sum over all sites agrees with that count, and sites
/// of all densities are unbiased.
///
/// Both come from the past, so that a window's samples can be given their final weights at once. The past fades.
#[derive(Debug)]
pub struct Exposure {
    duty: f64,
    /// The hook's cost per object in nanoseconds as expected, and as estimated.
    expected_cost: f64,
    cost: f64,
    /// The part of the time that windows cover, as estimated.
    share: f64,
    /// How long the timer was at work in the last seconds, and for how long of that it wanted windows.
    elapsed: f64,
    wanted: f64,
    /// What tells the hook's cost: over a longer time, and in the last seconds.
    lasting: Calibration,
    recent: Calibration,
    /// Objects and nanoseconds of the usual segment.
    usual: (f64, f64),
    /// How dense segments became in the end, compared with what was foreseen when samples left them early.
    foresight: f64,
    /// Segments since the estimates were made.
    fresh: u32,
}

/// A stretch of time in which the hook was on, in one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// The window's group.
    pub group: WindowGroup,
    /// Objects that the hook has seen.
    pub objects: u64,
    /// CPU time of the process in nanoseconds, with the hook's own.
    pub on_time: u64,
    /// For how many nanoseconds the hook had waited, at the segment's end, for a safe point at which to be removed.
    pub overdue: u64,
    /// The density that was [foreseen](Exposure::foresee) when samples left it early; None if none have.
    pub foreseen: Option<f64>,
}

impl Segment {
    /// Objects per nanosecond.
    fn density(&self) -> f64 {
        // A clock that stands still tells none.
        if self.on_time > 0 { self.objects as f64 / self.on_time as f64 } else { 0.0 }
    }

    /// The part of the time that was before the window's end.
    fn in_time(&self) -> f64 {
        1.0 - (self.overdue as f64 / self.on_time.max(1) as f64).min(1.0)
    }
}

/// What happened from the end of one segment to that of the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Nanoseconds for which the timer was at work: it is not while the program sleeps.
    pub elapsed: u64,
    /// For how many of those it wanted a window to be open.
    pub wanted: u64,
    /// The VM's own count of allocations.
    pub allocated: u64,
}

/// After how many nanoseconds of activity the past counts for 1/e. The hook's cost depends on the program, and on the
/// machine's speed; that may change from one second to the next, and so may how late a busy machine wakes up the timer.
const LASTING_MEMORY: f64 = 30e9;
const RECENT_MEMORY: f64 = 4e9;
/// The duty counts as much as a measurement of this many nanoseconds.
const DUTY_WEIGHT: f64 = 0.1e9;
/// How far the cost may well be from the expected one, and that of the last seconds from the lasting one, as multiples of
/// those: the standard deviations of what is expected.
const COST_DOUBT: f64 = 2.0;
const SPEED_DOUBT: f64 = 0.5;
/// The bound of the cost, as a multiple of the expected one.
const COST_BOUND: f64 = 10.0;

impl Exposure {
    /// For windows that are meant to cover the part `duty` of the time, with a hook that is expected to cost
    /// `expected_cost` nanoseconds per object.
    pub fn new(duty: f64, expected_cost: f64) -> Self {
        debug_assert!(duty > 0.0 && duty <= 1.0 && expected_cost >= 0.0);
        Self {
            duty,
            expected_cost,
            cost: expected_cost,
            share: duty,
            elapsed: 0.0,
            wanted: 0.0,
            lasting: Calibration::new(LASTING_MEMORY),
            recent: Calibration::new(RECENT_MEMORY),
            usual: (0.0, 0.0),
            foresight: 1.0,
            fresh: 0,
        }
    }

    /// The part of the time that windows are meant to cover.
    pub fn duty(&self) -> f64 {
        self.duty
    }

    /// The part of the time that windows cover, as estimated now.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// The hook's cost in nanoseconds per object, as estimated now.
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// The probability that a piece of the program's work like that in a segment, which has ended, is in a window.
    pub fn probability(&self, segment: &Segment) -> f64 {
        probability(self.share, self.cost, segment.density(), segment.in_time())
    }

    /// The same for a segment that has not ended, of which this is known so far.
    pub fn probability_so_far(&self, segment: &Segment) -> f64 {
        probability(self.share, self.cost, self.foresee(segment) * self.foresight, segment.in_time())
    }

    /// How dense a segment that has not ended will be if the rest is as usual. It will be a little less dense: samples
    /// leave it early because of a garbage collection, part of whose time is yet to come.
    pub fn foresee(&self, segment: &Segment) -> f64 {
        let (usual_objects, usual_length) = self.usual;
        let rest = (usual_length - segment.on_time as f64).max(0.0);
        let (objects, time) = (segment.objects as f64, segment.on_time as f64 + rest);
        if time > 0.0 { (objects + rest * usual_objects / usual_length.max(1.0)) / time } else { 0.0 }
    }

    /// Adds a segment, and the interval that it ends.
    pub fn record(&mut self, segment: Segment, interval: Interval) {
        let elapsed = interval.elapsed as f64;
        let keep = (-elapsed / RECENT_MEMORY).exp();
        self.elapsed = self.elapsed * keep + elapsed;
        self.wanted = self.wanted * keep + interval.wanted as f64;
        let seen = Seen {
            group: segment.group,
            objects: segment.objects as f64,
            density: segment.density(),
            in_time: segment.in_time(),
            share: self.share,
            probability: self.probability(&segment),
        };
        for calibration in [&mut self.lasting, &mut self.recent] {
            calibration.add(seen, elapsed, interval.allocated.max(segment.objects) as f64);
        }
        let (objects, length) = &mut self.usual;
        *objects += (segment.objects as f64 - *objects) / WindowGroup::COUNT as f64;
        *length += (segment.on_time as f64 - *length) / WindowGroup::COUNT as f64;
        if let Some(foreseen) = segment.foreseen.filter(|&foreseen| foreseen > 0.0 && segment.objects > 0) {
            self.foresight += ((segment.density() / foreseen).min(2.0) - self.foresight) / WindowGroup::COUNT as f64;
        }
        self.fresh += 1;
        if self.fresh as usize >= WindowGroup::COUNT {
            self.fresh = 0;
            self.estimate();
        }
    }

    fn estimate(&mut self) {
        let share = (self.wanted + self.duty * DUTY_WEIGHT) / (self.elapsed + DUTY_WEIGHT);
        self.share = share.clamp(f64::MIN_POSITIVE, 1.0);
        let most = COST_BOUND * self.expected_cost;
        let lasting = self.lasting.cost(self.expected_cost, COST_DOUBT, most);
        self.cost = self.recent.cost(lasting, SPEED_DOUBT, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUTY: f64 = 0.1;
    const FRAME: u64 = 10_000_000;
    const WINDOW: u64 = 1_000_000;

    /// A window with `objects`, after a frame in which the VM has counted `allocated`.
    fn record(exposure: &mut Exposure, number: usize, objects: u64, allocated: u64) {
        let segment = Segment { group: WindowGroup::new(number), objects, on_time: WINDOW, overdue: 0, foreseen: None };
        exposure.record(segment, Interval { elapsed: FRAME, wanted: WINDOW, allocated });
    }

    fn probability(exposure: &Exposure, objects: u64) -> f64 {
        exposure.probability(&Segment {
            group: WindowGroup::new(0),
            objects,
            on_time: WINDOW,
            overdue: 0,
            foreseen: None,
        })
    }

    #[test]
    fn it_is_the_duty_where_little_is_allocated() {
        let exposure = Exposure::new(DUTY, 50.0);
        assert_eq!(probability(&exposure, 0), DUTY);
        assert!(probability(&exposure, 1_000) < DUTY);
    }

    #[test]
    fn it_follows_the_time_for_which_windows_were_wanted() {
        let mut exposure = Exposure::new(DUTY, 50.0);
        let segment = Segment { group: WindowGroup::new(0), objects: 0, on_time: WINDOW, overdue: 0, foreseen: None };
        let interval = Interval { elapsed: FRAME, wanted: FRAME / 5, allocated: 0 };
        (0..1_600).for_each(|_| exposure.record(segment, interval));
        assert!((0.19..=0.2).contains(&exposure.share()), "{}", exposure.share());
    }

    #[test]
    fn the_cost_is_that_which_the_vms_count_tells() {
        let (cost, density) = (80, 1_000);
        let mut exposure = Exposure::new(DUTY, 50.0);
        // Objects per millisecond with the hook and without.
        let (with, without) = (density * 1_000_000 / (1_000_000 + cost * density), density);
        (0..1_600).for_each(|number| record(&mut exposure, number, with, with + 9 * without));
        assert!((exposure.cost() - 80.0).abs() < 2.0, "{}", exposure.cost());
        let expected = with as f64 / (with + 9 * without) as f64;
        let found = probability(&exposure, with);
        assert!((found / expected - 1.0).abs() < 0.002, "{found} instead of {expected}");
    }

    #[test]
    fn a_burst_changes_what_others_stand_for_only_a_little() {
        let mut exposure = Exposure::new(DUTY, 0.0);
        (0..160).for_each(|number| record(&mut exposure, number, if number == 80 { 100_000 } else { 100 }, 1_000));
        assert!((probability(&exposure, 100) / DUTY - 1.0).abs() < 0.02, "{}", probability(&exposure, 100));
    }

    #[test]
    fn a_little_data_changes_little() {
        let mut exposure = Exposure::new(DUTY, 50.0);
        (0..16).for_each(|number| record(&mut exposure, number, if number == 0 { 1_000 } else { 0 }, 100_000));
        assert!((40.0..110.0).contains(&exposure.cost()), "{}", exposure.cost());
    }

    #[test]
    fn the_first_samples_of_a_window_are_weighed_like_those_of_whole_windows() {
        let mut exposure = Exposure::new(DUTY, 80.0);
        (0..1_600).for_each(|number| record(&mut exposure, number, 1_000, 10_000));
        let early = Segment { group: WindowGroup::new(0), objects: 100, on_time: 10_000, overdue: 0, foreseen: None };
        assert!((exposure.probability_so_far(&early) / probability(&exposure, 1_000) - 1.0).abs() < 0.02);
    }

    #[test]
    fn what_cannot_be_is_no_reason_to_fail() {
        let mut exposure = Exposure::new(1.0, 0.0);
        let segment = |objects, on_time| Segment {
            group: WindowGroup::new(0),
            objects,
            on_time,
            overdue: u64::MAX,
            foreseen: None,
        };
        for _ in 0..100 {
            exposure.record(segment(u64::MAX, 0), Interval { elapsed: 0, wanted: u64::MAX, allocated: 0 });
            exposure.record(segment(0, u64::MAX), Interval { elapsed: u64::MAX, wanted: 0, allocated: u64::MAX });
        }
        let probability = exposure.probability(&segment(u64::MAX, 0));
        assert!(probability > 0.0 && probability <= 1.0, "{probability}");
    }
}
