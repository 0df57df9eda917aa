//! A VM that runs a program with a hook in windows: what it allocates, and what the shipped code estimates.

use memprofiler_core::readers::Readers;
use memprofiler_core::reservoir::{ClassId, Countdown, Departed, Fate, LiveSample, Reservoir, Timing, Windows};
use memprofiler_core::stack_tree::StackId;
use memprofiler_core::window_group::{WindowGroup, variance};
use memprofiler_core::windows::{
    Anticipation, Budget, Moment, Opening, Openings, Pace, Progress, Schedule, is_looked_at,
};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub const SITES: usize = 7;
/// Objects per site.
pub type Objects = [u64; SITES];

pub const MICROSECOND: u64 = 1_000;
pub const MILLISECOND: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

pub const RATE: f64 = 0.01;
pub const DUTY: f64 = 0.03;
const FRAME: Duration = Duration::from_millis(30);
/// What the hook costs for each object, and a sample at the first site in addition. Programs allocate a tenth of what
/// real ones do, and the hook costs ten times as much, so that simulations are quick.
const HOOK_COST: u64 = 200;
const SAMPLE_COST: u64 = 100;
/// What the hook costs for each object before a window that is ready.
const UNSEEN_COST: u64 = 140;
/// From one object's address to the next one's.
const SLOT: u64 = 40;
/// The mean delay of the timer and the job that opens and closes windows, which can come only later, and by how much
/// later they come after a sleep of some milliseconds.
const LATENESS: f64 = 30_000.0;
const AFTER_LONG_SLEEPS: u64 = 70_000;
const LONG_SLEEP: u64 = 5 * MILLISECOND;

/// How the program runs where others have the CPUs, too.
const SLICES: (u64, u64) = (3 * MILLISECOND, 3 * MILLISECOND);

thread_local! {
    /// The CPU time.
    static NOW: Cell<u64> = const { Cell::new(0) };
    /// What the timer says, apart from what is overdue.
    static TIMING: Cell<Timing> = const { Cell::new(Timing { elapsed: 0, wanted: 0, overdue: 0 }) };
    /// When the timer wakes up next, by the CPU time.
    static ASKED: Cell<u64> = const { Cell::new(0) };
    /// Since when the job is due.
    static OVERDUE: Cell<u64> = const { Cell::new(0) };
}

/// What the hook has taken, of each VM. All stay reachable: a sanitizer would take them for lost otherwise.
fn hook_time() -> &'static AtomicU64 {
    static ALL: Mutex<Vec<&'static AtomicU64>> = Mutex::new(Vec::new());
    let hook_time = Box::leak(Box::default());
    ALL.lock().unwrap_or_else(PoisonError::into_inner).push(hook_time);
    hook_time
}

fn windows(max_sampling_time: f64, expected_cost: f64) -> Option<Windows> {
    Some(Windows::new(DUTY, Budget::new(max_sampling_time), expected_cost, timing, hook_time()))
}

fn timing() -> Timing {
    Timing { overdue: NOW.get().saturating_sub(OVERDUE.get()), ..TIMING.get() }
}

/// How windows open and close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toggle {
    /// By a job at a safe point, which the timer asks for.
    SafePoint,
    /// The timer opens them, the first allocation after their end closes them.
    Timer,
}

pub struct Vm {
    toggle: Toggle,
    openings: Openings,
    /// When the window opens that the timer has got ready last, and when it closes, by the schedule's clock, and
    /// whether the hook is on.
    opens: u64,
    closes: u64,
    on: bool,
    /// Whether the last object at which it has looked was in a window, and how many it has passed over since it looked.
    inside: bool,
    unseen: u64,
    /// For how long the program has waited.
    waited: u64,
    /// When the one before has ended.
    ended: u64,
    reservoir: Reservoir,
    countdown: Arc<Countdown>,
    schedule: Schedule,
    anticipation: Anticipation,
    /// By how much windows end early.
    early: u64,
    /// When the open window will probably end, in real time without what the hook takes.
    ends: u64,
    pace: Pace,
    progress: Progress,
    /// The window that should be open, as far as the timer has noticed.
    scheduled: Option<u64>,
    /// When the timer was last awake, by the schedule's clock.
    woken: u64,
    /// For how long the program runs before others have the CPU, and for how long they have it.
    slices: (u64, u64),
    /// When the timer wakes up next, in real time.
    alarm: u64,
    /// When the last stretch began, and what the hook had taken by then.
    stretch: (u64, u64),
    /// The window that is open.
    open: Option<u64>,
    pub random: SmallRng,
    allocated: u64,
    pub truth: Objects,
    /// What samples stand for, by site and group, and the variance if they were independent.
    found: [[f64; WindowGroup::COUNT]; SITES],
    naive: [f64; SITES],
}

/// How an estimate compares with the truth.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    pub truth: f64,
    pub estimate: f64,
    pub variance: f64,
    /// The variance if samples were independent.
    pub naive_variance: f64,
}

impl Outcome {
    /// That of all sites together, without variances.
    pub fn total(sites: &[Self; SITES]) -> Self {
        let sum = |value: fn(&Self) -> f64| sites.iter().map(value).sum();
        Self { truth: sum(|site| site.truth), estimate: sum(|site| site.estimate), variance: 0.0, naive_variance: 0.0 }
    }
}

impl Vm {
    /// A VM whose hook is expected to cost that many nanoseconds.
    pub fn new(toggle: Toggle, seed: u64, expected_cost: f64) -> Self {
        NOW.set(0);
        TIMING.set(Timing::default());
        ASKED.set(0);
        OVERDUE.set(u64::MAX);
        let mut reservoir = Reservoir::new(RATE, usize::MAX, seed);
        reservoir.clear(false);
        reservoir.use_windows(windows(1.0, expected_cost));
        Self {
            toggle,
            openings: Openings::default(),
            opens: 0,
            closes: 0,
            on: false,
            inside: false,
            unseen: 0,
            waited: 0,
            ended: 0,
            countdown: Arc::clone(reservoir.countdown()),
            reservoir,
            schedule: Schedule::new(FRAME, DUTY, seed),
            anticipation: Anticipation::default(),
            early: 0,
            ends: u64::MAX,
            pace: Pace::default(),
            progress: Progress::default(),
            scheduled: None,
            woken: 0,
            slices: (1, 0),
            alarm: 0,
            stretch: (0, 0),
            open: None,
            random: SmallRng::seed_from_u64(seed),
            allocated: 0,
            truth: [0; SITES],
            found: [[0.0; WindowGroup::COUNT]; SITES],
            naive: [0.0; SITES],
        }
    }

    /// Keeps at most `bound` samples.
    pub fn limit(&mut self, bound: usize) {
        self.reservoir.set_bound(bound);
    }

    /// Begins again, with samples that take at most that part of the time.
    pub fn limit_sampling_time(&mut self, most: f64, expected_cost: f64) {
        self.reservoir.use_windows(windows(most, expected_cost));
    }

    pub fn now(&self) -> u64 {
        NOW.get()
    }

    /// An exponentially distributed number.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.random.random::<f64>()).ln()
    }

    /// Runs some stretches between safe points, each of `work` nanoseconds without the hook.
    pub fn run(&mut self, mut stretches: u64, work: u64, objects: &Objects) {
        if self.toggle == Toggle::Timer {
            return self.run_without_jobs(stretches, work, objects);
        }
        let per_stretch: u64 = objects.iter().sum();
        while stretches > 0 {
            let mut due = false;
            while ASKED.get() <= self.now() {
                due |= self.wake_timer();
            }
            if due {
                self.job();
            }
            let on = self.reservoir.is_window_open();
            // Up to the first safe point at which the job is due.
            let some = if on { 1 } else { (ASKED.get() - self.now()).div_ceil(work.max(1)).clamp(1, stretches) };
            NOW.set(self.now() + (some - 1) * work);
            self.stretch = (self.now(), self.publish());
            NOW.set(self.now() + work);
            if on {
                NOW.set(self.now() + per_stretch * HOOK_COST);
                self.sample(per_stretch, objects);
            }
            self.allocated += some * per_stretch;
            self.truth.iter_mut().zip(objects).for_each(|(sum, count)| *sum += some * count);
            stretches -= some;
        }
    }

    /// The same where windows take no safe point.
    fn run_without_jobs(&mut self, mut stretches: u64, work: u64, objects: &Objects) {
        let per_stretch: u64 = objects.iter().sum();
        while stretches > 0 {
            // Up to the one in which the timer wakes up.
            let some = if self.on { 0 } else { (ASKED.get().saturating_sub(self.now()) / work.max(1)).min(stretches) };
            if some == 0 {
                self.run_stretch(work, objects);
            }
            NOW.set(self.now() + some * work);
            self.allocated += some * per_stretch;
            self.truth.iter_mut().zip(objects).for_each(|(sum, count)| *sum += some.max(1) * count);
            stretches -= some.max(1);
        }
    }

    /// A stretch whose objects are spread over it.
    fn run_stretch(&mut self, work: u64, objects: &Objects) {
        let per_stretch: u64 = objects.iter().sum();
        for place in 0..per_stretch {
            self.pass(work / per_stretch);
            if self.on {
                if is_looked_at(self.allocated * SLOT) {
                    self.inside = self.follow_window();
                }
                NOW.set(self.now() + if self.inside { HOOK_COST } else { UNSEEN_COST });
                match self.countdown.left() {
                    _ if !self.inside => self.unseen += 1,
                    0 => self.take_sample(site_at(objects, place)),
                    left => self.countdown.pass(left),
                }
            }
            self.allocated += 1;
        }
        self.pass(work - work / per_stretch.max(1) * per_stretch);
    }

    /// Some time passes, in which the timer may wake up.
    fn pass(&mut self, time: u64) {
        self.stretch = (self.now(), self.publish());
        NOW.set(self.now() + time);
        while ASKED.get() <= self.now() {
            self.get_ready(ASKED.get(), true);
        }
    }

    /// The program waits. The timer may wake up meanwhile, and then waits for the program.
    pub fn wait(&mut self, time: u64) {
        let end = self.real_time() + time;
        if self.alarm <= end {
            self.get_ready(self.now(), false);
            self.progress.pause();
            self.alarm = end + self.lateness(0);
        }
        self.waited += time;
        ASKED.set(self.cpu_time(self.alarm));
    }

    /// The timer wakes up, and gets a window ready if it is time.
    fn get_ready(&mut self, asked: u64, running: bool) {
        let (time, hook_time) = self.advance_timer(asked);
        self.progress.record(self.alarm, asked);
        let reach = Progress::reach(self.schedule.window(), running);
        if let Some(Opening { window, opens }) = self.openings.due(self.schedule, time, running, reach) {
            self.ended = self.closes + hook_time;
            self.scheduled = Some(window);
            (self.opens, self.closes, self.on) = (opens, opens + self.schedule.window(), true);
        }
        let delay = self.progress.until_ready(self.openings.until_next(time), self.schedule.window());
        self.alarm += delay + self.lateness(delay);
        ASKED.set(self.cpu_time(self.alarm));
    }

    /// For the hook: whether an allocation is in a window, which may have just been opened.
    fn follow_window(&mut self) -> bool {
        if self.open != self.scheduled {
            self.reservoir.add_unseen(std::mem::take(&mut self.unseen), NOW.get());
            if self.now().saturating_sub(self.publish()) < self.opens {
                return false;
            }
            self.reservoir.close_window(self.ended, self.allocated);
            self.open = self.scheduled;
            let group = self.schedule.group(self.open.unwrap_or_default());
            self.reservoir.open_window(group, self.opens + self.publish(), NOW.get());
        }
        self.on = self.now().saturating_sub(self.publish()) < self.closes;
        self.on
    }

    /// Publishes what the hook has taken, and returns it.
    fn publish(&self) -> u64 {
        self.reservoir.publish_hook_time(NOW.get())
    }

    /// The time by the schedule's clock, and what the hook has taken, at a moment that is not before the last stretch.
    fn times(&mut self, at: u64) -> (u64, u64) {
        let ((began, before), now, after) = (self.stretch, self.now(), self.publish());
        let part = at.saturating_sub(began).min(now - began) as f64 / (now - began).max(1) as f64;
        let hook_time = before + ((after - before) as f64 * part) as u64;
        (at - hook_time, hook_time)
    }

    /// The real time now.
    fn real_time(&self) -> u64 {
        let (on, off) = self.slices;
        self.now() / on * (on + off) + self.now() % on + self.waited
    }

    /// The CPU time at some real time.
    fn cpu_time(&self, real: u64) -> u64 {
        let real = real.saturating_sub(self.waited);
        let (on, off) = self.slices;
        real / (on + off) * on + (real % (on + off)).min(on)
    }

    /// The postponed job: does what the timer has noticed.
    fn job(&mut self) {
        let (time, _) = self.times(self.now());
        let open = self.open.filter(|_| self.reservoir.is_window_open());
        if open == self.scheduled {
            return;
        }
        let soon = self.schedule.at(time + self.early);
        if soon.on && open == Some(soon.window) {
            return self.anticipation.undo();
        }
        self.reservoir.close_window(NOW.get(), self.allocated);
        self.open = self.scheduled;
        if let Some(window) = self.scheduled {
            self.reservoir.open_window(self.schedule.group(window), NOW.get(), NOW.get());
        }
        OVERDUE.set(u64::MAX);
    }

    /// The timer wakes up, asks for the job if it is due, and sleeps until the next change, or a little longer.
    fn wake_timer(&mut self) -> bool {
        let asked = ASKED.get();
        let (time, hook_time) = self.advance_timer(asked);
        self.progress.record(self.alarm, asked);
        let moment = self.anticipation.at(self.schedule, time);
        let Moment { on, window, .. } = moment;
        self.scheduled = on.then_some(window);
        let due = self.open.filter(|_| self.reservoir.is_window_open()) != self.scheduled;
        if due {
            OVERDUE.set(OVERDUE.get().min(asked));
        }
        let left = self.anticipation.until_change(time, self.pace.slowdown(moment, time, hook_time));
        if on {
            self.early = self.anticipation.early();
        }
        let length = self.schedule.window();
        let delay = if on { self.progress.until_close(left, length) } else { self.progress.until_open(left, length) };
        self.ends = if on {
            self.alarm - hook_time + self.progress.until_close(self.anticipation.least(time), length)
        } else {
            u64::MAX
        };
        self.alarm += delay + self.lateness(delay);
        ASKED.set(self.cpu_time(self.alarm));
        due
    }

    /// The hook wakes the timer if the window has probably ended.
    fn note_time(&mut self) {
        let real = self.real_time();
        if real - self.publish() >= self.ends {
            self.ends = u64::MAX;
            self.alarm = self.alarm.min(real + self.lateness(0));
            ASKED.set(self.cpu_time(self.alarm));
        }
    }

    /// By how much the timer oversleeps.
    fn lateness(&mut self, delay: u64) -> u64 {
        self.exponential(LATENESS) as u64 + if delay >= LONG_SLEEP { AFTER_LONG_SLEEPS } else { 0 }
    }

    fn advance_timer(&mut self, now: u64) -> (u64, u64) {
        let Timing { elapsed, wanted, .. } = TIMING.get();
        let (time, hook_time) = self.times(now);
        let passed = time.saturating_sub(self.woken);
        self.woken = time;
        TIMING.set(Timing {
            elapsed: elapsed + passed,
            wanted: wanted
                + match self.toggle {
                    Toggle::SafePoint if self.scheduled.is_none() => 0,
                    Toggle::SafePoint => passed,
                    Toggle::Timer => time.min(self.closes).saturating_sub((time - passed).max(self.opens)),
                },
            overdue: 0,
        });
        (time, hook_time)
    }

    /// Others have the CPUs for a part of the time.
    pub fn share_cpus(&mut self) {
        self.slices = SLICES;
    }

    /// The program waits, which takes no CPU time. The timer, which waits meanwhile, wakes up with the program.
    pub fn sleep(&mut self) {
        self.advance_timer(self.now());
        self.progress.pause();
        self.alarm = self.real_time() + self.lateness(0);
        ASKED.set(self.cpu_time(self.alarm));
    }

    /// The hook, for objects of stretches that are all alike.
    fn sample(&mut self, mut events: u64, objects: &Objects) {
        let per_stretch: u64 = objects.iter().sum();
        while events > 0 {
            let left = self.countdown.left();
            if left >= events {
                return self.countdown.pass(left - events + 1);
            }
            if left > 0 {
                self.countdown.pass(1);
            }
            events -= left + 1;
            self.take_sample(site_at(objects, events % per_stretch));
        }
    }

    fn take_sample(&mut self, site: usize) {
        let candidate = self.reservoir.select();
        if self.toggle == Toggle::SafePoint {
            self.note_time();
        }
        let class = ClassId(site as u32);
        // Stacks differ in depth.
        let cost = SAMPLE_COST * u64::from(class.0 + 1);
        NOW.set(NOW.get() + cost);
        self.reservoir.add_sampling_time(NOW.get() - cost, NOW.get());
        let sample = LiveSample::new(0, StackId::EMPTY, class, 0, Readers::NONE);
        assert!(self.reservoir.insert(candidate, sample, drop).is_none());
    }

    /// A garbage collection, which finds all objects dead.
    pub fn collect(&mut self, time: u64) {
        NOW.set(self.now() + time);
        let (found, naive) = (&mut self.found, &mut self.naive);
        self.reservoir.collect(
            true,
            |_, _| Fate::Dead,
            |Departed { sample, weight, window }| {
                let site = sample.class.0 as usize;
                found[site][window.map_or(0, WindowGroup::number)] += weight;
                naive[site] += weight * weight - weight;
            },
        );
        self.reservoir.recover_rate(true);
    }

    /// Counts and estimates from now on.
    pub fn forget(&mut self) {
        self.collect(0);
        (self.truth, self.found, self.naive) = Default::default();
    }

    /// The estimates, by site.
    pub fn outcomes(mut self) -> [Outcome; SITES] {
        self.reservoir.close_window(NOW.get(), self.allocated);
        self.collect(0);
        std::array::from_fn(|site| {
            let groups = self.found[site];
            let (estimate, variance) = (groups.iter().sum(), variance(&groups));
            let (truth, naive_variance) = (self.truth[site] as f64, self.naive[site]);
            Outcome { truth, estimate, variance, naive_variance }
        })
    }
}

/// Which site the object at that place of a stretch is from.
fn site_at(objects: &Objects, mut place: u64) -> usize {
    let site = objects.iter().position(|&count| {
        let here = place < count;
        place = place.wrapping_sub(count);
        here
    });
    site.unwrap_or(0)
}
