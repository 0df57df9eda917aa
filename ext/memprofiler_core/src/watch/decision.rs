//! Whether to take a profile now, and when to look again.

use super::level::Level;
use super::pressure::Pressure;
use super::rate::Rate;
use super::source::Reading;
use std::time::Duration;

/// The most profiles that one process writes.
const MOST: u32 = 10;

/// How long a profile is expected to take, until one was taken. The first names all stacks.
const EXPECTED_TIME: Duration = Duration::from_millis(300);

/// How much memory a profile is expected to take meanwhile, in bytes; of a small limit no more than a tenth.
const EXPECTED_MEMORY: u64 = 20_000_000;

/// A growth of less, in bytes per second, predicts nothing.
const LEAST_GROWTH: f64 = 1e6;

/// The growth, in bytes per second, that is noticed in time however suddenly it begins.
const FASTEST: f64 = 500e6;

/// The shortest and the longest time between two looks.
const INTERVALS: [Duration; 2] = [Duration::from_millis(5), Duration::from_secs(1)];

/// The shortest time between two looks while memory has not grown for [`STILL`]: what a first look at sudden growth may
/// lack, where a profile takes several times as long.
const AT_REST: Duration = Duration::from_millis(20);

/// For how long memory has not grown before that is rest.
const STILL: Duration = Duration::from_secs(2);

/// The time between two looks that is enough while even the fastest growth leaves time for a profile.
const AMPLE: Duration = Duration::from_millis(100);

/// The part of the limit above which the kernel's reports count. Files fill any cgroup once in a while, which is
/// nothing to report.
const SERIOUS: f64 = 0.75;

/// The part of the level below which an episode has ended.
const CALM: f64 = 0.9;

/// The least time from one profile to the next.
const PAUSE: Duration = Duration::from_secs(30);

/// When a prediction that did not come true no longer stands in the way of a profile at the level.
const DOUBT: Duration = Duration::from_secs(1);

/// Why a profile is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The level was reached.
    Level,
    /// At this speed the limit is reached before a profile would be written.
    Speed,
    /// The limit was reached.
    Events,
    /// Tasks wait for memory.
    Pressure,
}

impl Reason {
    /// For comments and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Level => "level",
            Self::Speed => "speed",
            Self::Events => "events",
            Self::Pressure => "pressure",
        }
    }
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Why to take a profile now; None if there is no reason.
    pub fire: Option<Reason>,
    /// When to look again; None for never.
    pub next: Option<Duration>,
}

/// What a profile may be taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Armed {
    /// Anything.
    Fully,
    /// Nothing yet in this episode; from then on the level. Also in a cgroup that stays nearly full, whatever this
    /// process does: the kernel would report that again and again.
    Doubtful(Duration),
    /// Nothing: there was one at the level in this episode.
    Not,
}

/// Decides on the memory of one process. Times are those since any moment, and do not go backwards.
#[derive(Debug)]
pub struct Watch {
    level: Level,
    armed: Armed,
    rate: Rate,
    /// That of this process's own memory.
    own_rate: Rate,
    pressure: Pressure,
    /// The cgroup that the rate and the pressure are of.
    group: usize,
    /// When memory was last seen to grow, or first seen.
    grown: Option<Duration>,
    /// Whether there was a copy of this process at the last look.
    copied: bool,
    /// When the last profile was asked for.
    fired: Option<Duration>,
    count: u32,
    expected_time: Duration,
    expected_memory: u64,
}

impl Watch {
    /// For a process that has taken no profile yet.
    pub fn new(level: Level) -> Self {
        Self {
            level,
            armed: Armed::Fully,
            rate: Rate::default(),
            own_rate: Rate::default(),
            pressure: Pressure::default(),
            group: 0,
            grown: None,
            copied: false,
            fired: None,
            count: 0,
            expected_time: EXPECTED_TIME,
            expected_memory: EXPECTED_MEMORY,
        }
    }

    /// Looks at the memory as it is now.
    pub fn look(&mut self, now: Duration, reading: &Reading) -> Look {
        self.follow(now, reading);
        let signs = self.pressure.look(reading.reported, reading);
        let was_copied = std::mem::replace(&mut self.copied, reading.copied);
        let Some(level) = self.level.bytes(reading.limit) else {
            // A limit may be set later.
            return Look { fire: None, next: Some(INTERVALS[1]) };
        };
        let used = self.used(reading);
        let serious =
            reading.limit.zip(reading.usage).is_some_and(|(limit, usage)| usage as f64 > limit as f64 * SERIOUS);
        let rested = self.fired.is_none_or(|fired| now.saturating_sub(fired) >= PAUSE);
        if self.armed != Armed::Fully && used < (level as f64 * CALM) as u64 && rested {
            self.armed = if serious { Armed::Doubtful(now) } else { Armed::Fully };
        }
        // The last one is for the level.
        let fully = self.armed == Armed::Fully && self.count + 1 < MOST;
        let reason = match self.armed {
            _ if reading.copied || was_copied => None,
            Armed::Not => None,
            Armed::Doubtful(until) if now < until => None,
            _ if used >= level => Some(Reason::Level),
            _ if fully && self.is_near(reading) => Some(Reason::Speed),
            _ if fully && (signs.killing || serious && signs.reached) => Some(Reason::Events),
            _ if fully && serious && signs.stalled => Some(Reason::Pressure),
            _ => None,
        };
        if let Some(reason) = reason {
            self.fired = Some(now);
            self.count += 1;
            self.armed = if reason == Reason::Level { Armed::Not } else { Armed::Doubtful(now + DOUBT) };
        }
        Look { fire: reason, next: (self.count < MOST).then(|| self.interval(now, reading, level)) }
    }

    /// Takes notice of the memory as it is now, and decides nothing.
    pub fn follow(&mut self, now: Duration, reading: &Reading) {
        if std::mem::replace(&mut self.group, reading.group) != reading.group {
            (self.rate, self.pressure) = (Rate::default(), Pressure::default());
        }
        self.rate.add(now, reading.usage.unwrap_or(reading.resident));
        self.own_rate.add(now, reading.resident);
        let growth = self.rate.bytes_per_second().max(self.own_rate.bytes_per_second());
        if self.grown.is_none() || growth >= LEAST_GROWTH {
            self.grown = Some(now);
        }
    }

    /// Whether this process, rather than others of its cgroup, is what fills the memory. `own` says how many bytes it
    /// shares with no other process.
    pub fn is_at_fault(&self, reading: &Reading, own: impl FnOnce() -> u64) -> bool {
        let growth = self.own_rate.bytes_per_second();
        // The cgroup counts once what forked processes share; each of them has it in physical memory.
        reading.usage.is_none_or(|usage| reading.resident >= usage / 2 && own() >= usage / 2)
            || growth >= LEAST_GROWTH && growth >= self.rate.bytes_per_second() / 2.0
    }

    /// Whether the process would be killed before a profile is written if that does not begin now; `within` is the time
    /// that this one would take.
    pub fn is_dying(&self, reading: &Reading, within: Duration, memory: u64) -> bool {
        let Some((limit, usage)) = reading.limit.zip(reading.usage) else { return false };
        let growth = self.rate.bytes_per_second() * within.as_secs_f64();
        usage.saturating_add(growth as u64).saturating_add(memory.min(limit / 10)) >= limit
    }

    /// Notes what a profile has cost, which the next one will.
    pub fn measured(&mut self, time: Duration, memory: u64) {
        self.expected_time = time.clamp(EXPECTED_TIME / 3, 10 * EXPECTED_TIME);
        self.expected_memory = memory.clamp(EXPECTED_MEMORY / 4, 10 * EXPECTED_MEMORY);
    }

    /// How fast memory grows, in bytes per second: that of the cgroup, or of this process if there is none, or if the
    /// level is one of its own memory.
    pub fn growth(&self) -> f64 {
        match self.level {
            Level::Part(_) => self.rate.bytes_per_second(),
            Level::Resident(_) => self.own_rate.bytes_per_second(),
        }
    }

    fn used(&self, reading: &Reading) -> u64 {
        match self.level {
            Level::Part(_) => reading.usage.unwrap_or(0),
            Level::Resident(_) => reading.resident,
        }
    }

    fn is_near(&self, reading: &Reading) -> bool {
        self.rate.bytes_per_second() >= LEAST_GROWTH && self.is_dying(reading, self.expected_time, self.expected_memory)
    }

    /// Proportional to what is left: at the fastest growth it is used up by then.
    fn interval(&self, now: Duration, reading: &Reading, level: u64) -> Duration {
        let [least, most] = INTERVALS;
        if self.armed == Armed::Not {
            return most / 2;
        }
        // What is left until a profile has to begin at this growth.
        let room = |growth: f64| {
            let (limit, usage) = reading.limit.zip(reading.usage)?;
            let profile = self.expected_memory.min(limit / 10) + (growth * self.expected_time.as_secs_f64()) as u64;
            Some(limit.saturating_sub(usage).saturating_sub(profile))
        };
        let until = |left: u64| Duration::from_secs_f64((left as f64 / FASTEST).min(most.as_secs_f64()));
        let rests = self.grown.is_some_and(|grown| now.saturating_sub(grown) >= STILL);
        // A level in bytes may stand for a limit that cannot be seen.
        let ample = until(room(FASTEST).unwrap_or(0)).min(AMPLE);
        let left = level.saturating_sub(self.used(reading)).min(room(self.rate.bytes_per_second()).unwrap_or(u64::MAX));
        until(left).max(ample).max(if rests { AT_REST } else { least })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;
    const LIMIT: u64 = 300 * MB;

    fn reading(usage: u64) -> Reading {
        Reading { limit: Some(LIMIT), usage: Some(usage), ..Reading::default() }
    }

    /// A process whose memory is `usage` after so many seconds, watched for `seconds`. Returns when profiles were
    /// taken, in seconds, why, and the number of looks.
    fn live(level: Level, seconds: f64, usage: impl Fn(f64) -> u64) -> (Vec<(f64, Reason)>, u32) {
        let (mut watch, mut now, mut looks, mut fired) = (Watch::new(level), Duration::ZERO, 0, Vec::new());
        while now.as_secs_f64() < seconds {
            let look = watch.look(now, &reading(usage(now.as_secs_f64())));
            looks += 1;
            fired.extend(look.fire.map(|reason| (now.as_secs_f64(), reason)));
            let Some(next) = look.next else { break };
            now += next;
        }
        (fired, looks)
    }

    fn grow(from: u64, rate: u64) -> impl Fn(f64) -> u64 {
        move |seconds| from * MB + (seconds * (rate * MB) as f64) as u64
    }

    #[test]
    fn a_slow_leak_fires_once_at_the_level() {
        let (fired, _) = live(Level::Part(0.9), 100.0, grow(100, 2));
        assert_eq!(fired.len(), 1, "{fired:?}");
        let (seconds, reason) = fired[0];
        assert_eq!(reason, Reason::Level);
        assert!((85.0..85.1).contains(&seconds), "{seconds}");
    }

    #[test]
    fn another_cgroup_with_more_memory_is_no_growth() {
        for (group, fires) in [(0, true), (1, false)] {
            let mut watch = Watch::new(Level::Part(0.9));
            let mut look = |millis, reading| watch.look(Duration::from_millis(millis), &reading).fire.is_some();
            assert!(!look(0, reading(100 * MB)) && !look(100, reading(100 * MB)));
            let fired = (1..20).any(|looks| look(100 + 5 * looks, Reading { group, ..reading(200 * MB) }));
            assert_eq!(fired, fires, "cgroup {group}");
        }
    }

    #[test]
    fn a_fast_leak_fires_while_there_is_time_to_write() {
        for rate in [50, 100, 200, 400] {
            // Idle for a while, so that looks are rare when it begins.
            let usage = move |seconds: f64| grow(100, rate)((seconds - 3.21).max(0.0));
            let (fired, _) = live(Level::Part(0.9), 10.0, usage);
            let (seconds, _) = fired[0];
            let left = LIMIT.saturating_sub(usage(seconds)) as f64 / (rate * MB) as f64;
            assert!(left > 0.2, "{rate} MB/s: {left} s left");
            assert!(usage(seconds) > LIMIT / 3 + 10 * MB, "{rate} MB/s fired at {}", usage(seconds));
        }
    }

    #[test]
    fn an_idle_process_is_hardly_looked_at() {
        assert!(live(Level::Part(0.9), 100.0, |_| 100 * MB).1 <= 300);
        let mut watch = Watch::new(Level::Part(0.9));
        let far = Reading { limit: Some(4000 * MB), usage: Some(100 * MB), ..Reading::default() };
        assert_eq!(watch.look(Duration::ZERO, &far).next, Some(INTERVALS[1]));
    }

    #[test]
    fn it_looks_often_just_below_the_level() {
        let mut watch = Watch::new(Level::Part(0.9));
        assert_eq!(watch.look(Duration::ZERO, &reading(269 * MB)).next, Some(INTERVALS[0]));
    }

    #[test]
    fn it_looks_less_often_at_rest_just_below_the_level() {
        let looks = |seconds| live(Level::Part(0.9), seconds, |_| 269 * MB).1;
        assert!(looks(100.0) - looks(10.0) <= 90 * 51, "{} {}", looks(100.0), looks(10.0));
    }

    #[test]
    fn what_begins_to_grow_after_a_rest_just_below_the_level_is_seen_in_time() {
        for (rate, begin) in [50, 100, 200].into_iter().flat_map(|rate| (0..20).map(move |step| (rate, step))) {
            let usage = move |seconds: f64| grow(268, rate)((seconds - 10.0 - f64::from(begin) * 0.001).max(0.0));
            let (fired, _) = live(Level::Part(0.9), 11.0, usage);
            let late = usage(fired[0].0).saturating_sub(270 * MB);
            assert!(late <= rate * MB / 50, "{rate} MB/s: {late} bytes late");
        }
    }

    #[test]
    fn it_looks_less_often_where_the_limit_leaves_much() {
        let next = |usage| {
            let reading = Reading { limit: Some(4000 * MB), usage: Some(usage), ..Reading::default() };
            Watch::new(Level::Part(0.9)).look(Duration::ZERO, &reading).next
        };
        assert_eq!(next(3599 * MB), Some(AMPLE));
        let hidden = Reading { resident: 3599 * MB, ..Reading::default() };
        let next = Watch::new(Level::Resident(3600 * MB)).look(Duration::ZERO, &hidden).next;
        assert_eq!(next, Some(INTERVALS[0]), "who knows where its limit is");
    }

    #[test]
    fn staying_above_the_level_is_one_episode() {
        assert_eq!(live(Level::Part(0.9), 1000.0, |_| 280 * MB).0.len(), 1);
    }

    #[test]
    fn each_return_to_the_level_is_an_episode_and_there_are_at_most_ten() {
        let wave = |seconds: f64| if (seconds / 50.0) as u64 % 2 == 0 { 200 * MB } else { 280 * MB };
        assert_eq!(live(Level::Part(0.9), 450.0, wave).0.len(), 4);
        assert_eq!(live(Level::Part(0.9), 5000.0, wave).0.len(), 10);
    }

    #[test]
    fn hovering_around_the_level_is_one_episode() {
        let wave = |seconds: f64| if seconds as u64 % 2 == 0 { 265 * MB } else { 275 * MB };
        assert_eq!(live(Level::Part(0.9), 300.0, wave).0.len(), 1);
    }

    #[test]
    fn a_false_alarm_does_not_stand_in_the_way_of_the_level() {
        let usage = |seconds: f64| match seconds {
            s if s < 1.0 => 100 * MB,
            s if s < 1.5 => grow(100, 280)(s - 1.0),
            s if s < 5.0 => 240 * MB,
            s => grow(240, 5)(s - 5.0),
        };
        let (fired, _) = live(Level::Part(0.9), 15.0, usage);
        assert_eq!(fired.iter().map(|&(_, reason)| reason).collect::<Vec<_>>(), [Reason::Speed, Reason::Level]);
    }

    #[test]
    fn what_a_profile_has_cost_is_expected_of_the_next() {
        let mut watch = Watch::new(Level::Part(0.9));
        watch.measured(Duration::from_secs(1), 0);
        let fires = |watch: &mut Watch| {
            (0..).map(|step| (step, grow(0, 100)(f64::from(step) * 0.005))).find_map(|(step, usage)| {
                watch.look(Duration::from_millis(5) * step, &reading(usage)).fire.map(|_| usage / MB)
            })
        };
        let late = fires(&mut Watch::new(Level::Part(0.9)));
        assert!(fires(&mut watch).zip(late).is_some_and(|(early, late)| early + 50 < late));
    }

    #[test]
    fn without_a_limit_only_the_level_counts() {
        let mut watch = Watch::new(Level::Resident(100 * MB));
        let mut fire = |millis, resident| {
            watch.look(Duration::from_millis(millis), &Reading { resident, ..Reading::default() }).fire
        };
        assert_eq!((fire(0, 0), fire(5, 99 * MB), fire(10, 100 * MB)), (None, None, Some(Reason::Level)));
        let mut watch = Watch::new(Level::Part(0.9));
        let look = watch.look(Duration::ZERO, &Reading { resident: LIMIT, ..Reading::default() });
        assert_eq!(look, Look { fire: None, next: Some(INTERVALS[1]) });
    }

    #[test]
    fn bytes_are_compared_with_this_process_and_the_limit_with_the_cgroup() {
        let mut watch = Watch::new(Level::Resident(100 * MB));
        let mut fire = |millis, resident, usage| {
            watch.look(Duration::from_millis(millis), &Reading { resident, ..reading(usage) }).fire
        };
        assert_eq!(fire(0, 50 * MB, 150 * MB), None);
        assert_eq!(fire(100, 50 * MB, 160 * MB), None);
        assert_eq!(fire(200, 50 * MB, 250 * MB), Some(Reason::Speed));
    }

    #[test]
    fn the_kernels_reports_count_where_memory_is_short() {
        let fire = |usage, before: Reading, after: Reading| {
            let mut watch = Watch::new(Level::Part(0.9));
            let merged = |other: Reading| Reading {
                kills: other.kills,
                reached: other.reached,
                stalled: other.stalled,
                reported: other.reported,
                ..reading(usage)
            };
            watch.look(Duration::ZERO, &merged(before));
            watch.look(Duration::from_millis(200), &merged(after)).fire
        };
        let reached = Reading { reached: 1, ..Reading::default() };
        assert_eq!(fire(250 * MB, Reading::default(), reached), Some(Reason::Events));
        assert_eq!(fire(100 * MB, Reading::default(), reached), None);
        let stalled = |millis| Reading {
            stalled: Some(Duration::from_millis(millis)),
            reported: Duration::from_millis(4 * millis),
            ..Reading::default()
        };
        assert_eq!(fire(250 * MB, stalled(0), stalled(50)), Some(Reason::Pressure));
        assert_eq!(fire(100 * MB, stalled(0), stalled(50)), None);
    }

    /// Why profiles are taken of a process whose cgroup uses `usage`, and reaches its limit all the time.
    fn live_at_the_limit(level: Level, usage: impl Fn(u64) -> u64, resident: impl Fn(u64) -> u64) -> Vec<Reason> {
        let (mut watch, mut fired) = (Watch::new(level), Vec::new());
        for second in 0..3600 {
            let reading = Reading { resident: resident(second), reached: second, ..reading(usage(second)) };
            let look = watch.look(Duration::from_secs(second), &reading);
            fired.extend(look.fire);
            if look.next.is_none() {
                break;
            }
        }
        fired
    }

    #[test]
    fn a_cgroup_that_is_always_full_is_reported_once() {
        let full = |_| 240 * MB;
        assert_eq!(live_at_the_limit(Level::Part(0.9), full, |_| MB), [Reason::Events]);
        assert_eq!(live_at_the_limit(Level::Resident(100 * MB), full, |_| MB), [Reason::Events]);
        let leaks = |second| if second < 3000 { 240 * MB } else { 280 * MB };
        assert_eq!(live_at_the_limit(Level::Part(0.9), leaks, |_| MB), [Reason::Events, Reason::Level]);
        let waves = |second| if second / 100 % 2 == 0 { 50 * MB } else { 100 * MB };
        let fired = live_at_the_limit(Level::Resident(100 * MB), full, waves);
        assert_eq!(fired, [&[Reason::Events][..], &[Reason::Level; 9]].concat());
    }

    #[test]
    fn the_last_profile_is_kept_for_the_level() {
        let waves = |second| if second < 3000 { [100, 230][second as usize / 50 % 2] * MB } else { 280 * MB };
        let fired = live_at_the_limit(Level::Part(0.9), waves, |_| MB);
        assert_eq!(fired, [&[Reason::Events; 9][..], &[Reason::Level]].concat());
    }

    #[test]
    fn a_copy_of_the_process_is_no_reason() {
        let mut watch = Watch::new(Level::Part(0.9));
        let mut fire = |millis, usage, kills, copied| {
            watch.look(Duration::from_millis(millis), &Reading { kills, copied, ..reading(usage) }).fire
        };
        assert_eq!(fire(0, 200 * MB, 0, false), None);
        assert_eq!(fire(100, 295 * MB, 0, true), None);
        assert_eq!(fire(200, 240 * MB, 1, false), None, "the kernel has killed the copy");
        assert_eq!(fire(300, 270 * MB, 1, false), Some(Reason::Level));
    }

    #[test]
    fn who_has_or_takes_most_is_at_fault() {
        let at_fault = |resident: [u64; 2], shared: u64, usage: [u64; 2]| {
            let mut watch = Watch::new(Level::Part(0.9));
            let [before, now] = [0, 1].map(|at| Reading { resident: resident[at] * MB, ..reading(usage[at] * MB) });
            watch.follow(Duration::ZERO, &before);
            watch.follow(Duration::from_secs(1), &now);
            watch.is_at_fault(&now, || now.resident - shared * MB)
        };
        assert!(at_fault([150, 150], 10, [250, 270]), "it has most");
        assert!(!at_fault([150, 150], 100, [250, 270]), "it shares most of what it has");
        assert!(at_fault([50, 65], 10, [250, 270]), "it grows most");
        assert!(!at_fault([50, 55], 10, [250, 270]), "another grows more");
        assert!(!at_fault([50, 50], 10, [250, 250]), "nobody grows");
        let alone = Reading { resident: MB, ..Reading::default() };
        assert!(Watch::new(Level::Resident(MB)).is_at_fault(&alone, || 0));
    }

    #[test]
    fn it_is_dying_when_the_limit_comes_first() {
        let mut watch = Watch::new(Level::Part(0.9));
        (0..100).for_each(|step| {
            watch.look(Duration::from_millis(5 * step), &reading(grow(100, 100)(step as f64 * 0.005)));
        });
        let within = Duration::from_millis(100);
        assert!(!watch.is_dying(&reading(280 * MB), within, 5 * MB));
        assert!(watch.is_dying(&reading(286 * MB), within, 5 * MB));
        assert!(!watch.is_dying(&Reading::default(), within, 5 * MB));
    }
}
