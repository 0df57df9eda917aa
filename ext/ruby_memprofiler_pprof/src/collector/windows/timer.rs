//! The thread that notices when a window opens or closes. It touches no Ruby object: it switches the hook on, which the
//! hook itself switches off, or asks the VM to run a job at the next safe point. While no Ruby thread runs it waits
//! without a time limit.
//!
//! A process has at most one, which exists from the first window to the process's end.

use super::program_clock::CLOCK;
use crate::faults;
use crate::vm::event_flags::EventFlags;
use crate::vm::safepoint::{self, Job};
use crate::vm::{activity, clock, signals};
use memprofiler_core::reservoir::Timing;
use memprofiler_core::windows::{Anticipation, Moment, Opening, Openings, Pace, Progress, Schedule};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

/// More than twice what the thread uses.
const STACK_SIZE: usize = 128 << 10;

/// The one timer.
pub static TIMER: Timer = Timer {
    thread: AtomicPtr::new(std::ptr::null_mut()),
    process: AtomicU32::new(0),
    wanted: AtomicBool::new(false),
    acting: AtomicBool::new(false),
    frame: AtomicU64::new(0),
    duty: AtomicU64::new(0),
    seed: AtomicU64::new(0),
    scheduled: AtomicU64::new(NONE),
    noticed: AtomicU64::new(0),
    in_force: AtomicU64::new(NONE),
    requested: AtomicU64::new(0),
    early: AtomicU64::new(0),
    too_early: AtomicBool::new(false),
    ends: AtomicU64::new(NONE),
    elapsed: AtomicU64::new(0),
    wanted_open: AtomicU64::new(0),
    toggle: AtomicU32::new(JOBS),
    opens: AtomicU64::new(0),
    closes: AtomicU64::new(0),
    look_at: AtomicU64::new(0),
    end: AtomicU64::new(0),
};

/// The most nanoseconds that threads are taken to need to be interrupted. Above that the program is to blame, which is
/// as late when windows open as when they close.
const MOST_LATE: i64 = 100_000;

/// How many times its length a window's beginning or end can be ahead when the hook looks.
const MOST_AHEAD: u64 = 4;

/// For how long the hook does not look again if it cannot begin a window, in nanoseconds.
const MOMENT: u64 = 100_000;

/// What is in force when no window is open.
const NONE: u64 = u64::MAX;

/// Jobs open and close windows.
const JOBS: u32 = 0;
/// The thread gets them ready, the hook opens and closes them.
const DIRECT: u32 = 1;
/// For a moment nobody opens any.
const PAUSED: u32 = 2;

/// What the thread shares with the job.
#[derive(Debug)]
pub struct Timer {
    /// The thread's handle; null before the first start.
    thread: AtomicPtr<Thread>,
    /// The process that it belongs to: a forked child has none.
    process: AtomicU32,
    wanted: AtomicBool,
    /// Whether the thread may be about to call the VM, or to switch the hook on.
    acting: AtomicBool,
    /// The parts of the schedule. If the thread reads them while they change it may ask for a job too much or too late,
    /// no more: the job has a schedule of its own.
    frame: AtomicU64,
    duty: AtomicU64,
    seed: AtomicU64,
    /// The number of the window that should be open by the schedule, or [`NONE`], as of when the thread last looked; of
    /// one that the hook closes, until then.
    scheduled: AtomicU64,
    /// What the schedule's clock said when that changed; read after it.
    noticed: AtomicU64,
    /// The number of the window that is open, or [`NONE`].
    in_force: AtomicU64,
    /// Since when, by the program's CPU time, the two differ; 0 if they do not.
    requested: AtomicU64,
    /// By how many nanoseconds the thread ends windows early, since it comes late on average, and whether the job has
    /// found the last end to be too early.
    early: AtomicU64,
    too_early: AtomicBool,
    /// When the open window will probably end, by the monotonic clock without what hooks take; [`NONE`] if the thread
    /// is awake anyway, or none is open.
    ends: AtomicU64,
    /// How many nanoseconds of CPU time the program has used while windows were used, without what hooks took in them,
    /// and how many of those while a window was scheduled.
    elapsed: AtomicU64,
    wanted_open: AtomicU64,
    /// How windows open and close: [`JOBS`], [`DIRECT`] or [`PAUSED`].
    toggle: AtomicU32,
    /// When the window opens for which it has last switched the hook on, and when it closes, by the schedule's clock.
    opens: AtomicU64,
    closes: AtomicU64,
    /// When the hook has to look whether the window has begun, or is over, by the monotonic clock without what hooks
    /// take.
    look_at: AtomicU64,
    /// When the last window that was in force has ended, by the program's CPU time.
    end: AtomicU64,
}

impl Timer {
    /// Follows the schedule that [`Schedule::new`] makes of these, by requesting `job`. Creates the thread if this
    /// process has none yet.
    pub fn start(&'static self, frame: Duration, duty: f64, seed: u64, job: Job) -> io::Result<()> {
        self.frame.store(u64::try_from(frame.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.duty.store(duty.to_bits(), Ordering::Relaxed);
        self.seed.store(seed, Ordering::Relaxed);
        self.scheduled.store(NONE, Ordering::SeqCst);
        self.closes.store(0, Ordering::SeqCst);
        self.look_at.store(0, Ordering::Relaxed);
        activity::measure(true);
        self.wanted.store(true, Ordering::SeqCst);
        if self.is_gone() {
            return self.create(job).inspect_err(|_| self.wanted.store(false, Ordering::SeqCst));
        }
        self.wake();
        Ok(())
    }

    fn create(&'static self, job: Job) -> io::Result<()> {
        if faults::denied("timer of windows") {
            return Err(io::Error::from_raw_os_error(libc::EAGAIN));
        }
        self.acting.store(false, Ordering::SeqCst);
        CLOCK.restart();
        let builder = thread::Builder::new().name("memprofiler-win".into()).stack_size(STACK_SIZE);
        // The program's signals are for Ruby's threads.
        let thread = signals::with_all_blocked(|| builder.spawn(move || self.run(job)))?;
        activity::watch_for(thread.thread().clone());
        self.thread.store(Box::into_raw(Box::new(thread.thread().clone())), Ordering::Release);
        self.process.store(std::process::id(), Ordering::SeqCst);
        Ok(())
    }

    /// Whether the process was forked since the last start. Safe in hooks.
    pub fn is_gone(&self) -> bool {
        self.process.load(Ordering::SeqCst) != std::process::id()
    }

    /// Lets the thread wait until the next start. When this returns it does not call the VM any more.
    pub fn stop(&self) {
        self.wanted.store(false, Ordering::SeqCst);
        activity::measure(false);
        self.wait_for_action();
    }

    /// Has the thread switch the hook on from now on.
    pub fn set_direct(&self) {
        self.toggle.store(DIRECT, Ordering::SeqCst);
        self.wake();
    }

    /// Whether the thread switches the hook on.
    pub fn is_direct(&self) -> bool {
        self.toggle.load(Ordering::SeqCst) == DIRECT
    }

    /// Has the thread do nothing until this is changed again. When this returns it does not switch the hook on any
    /// more.
    pub fn pause(&self) {
        self.toggle.store(PAUSED, Ordering::SeqCst);
        self.wait_for_action();
    }

    /// Has the thread ask for jobs from now on. When this returns it does not switch the hook on any more. Whether it
    /// did.
    pub fn leave_direct(&self) -> bool {
        let direct = self.toggle.swap(JOBS, Ordering::SeqCst) != JOBS;
        self.wait_for_action();
        if direct {
            self.note_end();
            self.scheduled.store(NONE, Ordering::SeqCst);
        }
        direct
    }

    /// Waits until the thread has done what it may have begun before it could know better.
    fn wait_for_action(&self) {
        // SeqCst, as in `act`: that sees what was stored before, or this sees that it is under way.
        // It takes nanoseconds, unless the system has interrupted the thread there. In a forked child it has vanished.
        while self.acting.load(Ordering::SeqCst) && !self.is_gone() {
            thread::yield_now();
        }
    }

    /// Whether the open window has ended at `now` by the schedule's clock, or is about to. If the thread has taken it
    /// to end too early, not knowing what the hook has taken of its time, this has it look again.
    pub fn ends(&self, schedule: Schedule, window: u64, now: u64) -> bool {
        let moment = schedule.at(now.saturating_add(self.early.load(Ordering::Relaxed)));
        if !moment.on || moment.window != window {
            return true;
        }
        self.too_early.store(true, Ordering::SeqCst);
        if self.requested.swap(0, Ordering::SeqCst) != 0 {
            self.wake();
        }
        false
    }

    /// Wakes the thread if the open window has probably ended at `now`, by the monotonic clock: how much of its time
    /// the hook takes cannot be foreseen, but hooks know it. Safe in hooks.
    pub fn note_time(&self, now: u64) {
        let time = now.saturating_sub(CLOCK.hooks());
        if time >= self.ends.load(Ordering::Relaxed) && self.ends.swap(NONE, Ordering::Relaxed) != NONE {
            self.wake();
        }
    }

    fn wake(&self) {
        // SAFETY: a handle that is never freed.
        if let Some(thread) = unsafe { self.thread.load(Ordering::Acquire).as_ref() } {
            thread.unpark();
        }
    }

    /// The number of the window that should be open, as far as the thread has noticed.
    pub fn scheduled(&self) -> Option<u64> {
        Some(self.scheduled.load(Ordering::SeqCst)).filter(|&window| window != NONE)
    }

    /// Whether the window that should be open is in force. For the hook that the thread switches.
    #[inline]
    pub fn is_in_force(&self) -> bool {
        let scheduled = self.scheduled.load(Ordering::Relaxed);
        scheduled == self.in_force.load(Ordering::Relaxed) && scheduled != NONE
    }

    /// Whether the window may have begun or be over at `now`, by the monotonic clock, so that
    /// [`has_begun`](Self::has_begun) and [`is_over`](Self::is_over) have to be asked.
    #[inline]
    pub fn must_look(&self, now: u64) -> bool {
        now.saturating_sub(CLOCK.hooks()) >= self.look_at.load(Ordering::Relaxed)
    }

    /// Has the hook not look again for a moment after `now`, by the monotonic clock.
    pub fn look_later(&self, now: u64) {
        self.look_at.store(now.saturating_sub(CLOCK.hooks()).saturating_add(MOMENT), Ordering::Relaxed);
    }

    /// Whether the window that is scheduled has begun. What the hook has taken must be published.
    pub fn has_begun(&self) -> bool {
        !self.put_off_look(self.opens.load(Ordering::SeqCst), CLOCK.now())
    }

    /// Whether the window is over. If so it is no longer scheduled. What the hook has taken must be published.
    pub fn is_over(&self) -> bool {
        let in_force = self.in_force.load(Ordering::SeqCst);
        if self.put_off_look(self.closes.load(Ordering::SeqCst), CLOCK.now()) {
            // That may be when another one closes, which the thread has just got ready.
            if self.scheduled.load(Ordering::SeqCst) != in_force {
                self.look_at.store(0, Ordering::Relaxed);
            }
            return false;
        }
        self.note_end();
        self.look_at.store(0, Ordering::Relaxed);
        // Unless the thread has just got another one ready.
        let _ = self.scheduled.compare_exchange(in_force, NONE, Ordering::SeqCst, Ordering::SeqCst);
        true
    }

    /// Has the hook look no earlier than at a window's beginning or end, if that is after `now`, both by the schedule's
    /// clock. Whether it is.
    fn put_off_look(&self, time: u64, now: u64) -> bool {
        let left = time.saturating_sub(now);
        // The clock may have gone back, as where another Ractor was created.
        let ahead = left > 0 && left <= MOST_AHEAD.saturating_mul(self.schedule().window());
        if ahead {
            let real = clock::monotonic().saturating_sub(CLOCK.hooks());
            self.look_at.store(real.saturating_add(left), Ordering::Relaxed);
        }
        ahead
    }

    /// When the window that is scheduled begins, by the program's CPU time.
    pub fn beginning(&self) -> u64 {
        self.opens.load(Ordering::SeqCst).saturating_add(CLOCK.hooks())
    }

    /// When the window that was in force last has ended, by the program's CPU time.
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::SeqCst)
    }

    /// Notes that the window which is scheduled ends, if it is in force: at the latest when it closes.
    fn note_end(&self) {
        let in_force = self.in_force.load(Ordering::SeqCst);
        if in_force != NONE && self.scheduled.load(Ordering::SeqCst) == in_force {
            let end = self.closes.load(Ordering::SeqCst).min(CLOCK.now()).saturating_add(CLOCK.hooks());
            self.end.store(end, Ordering::SeqCst);
        }
    }

    /// Has the window close now. Safe in hooks.
    pub fn cut_short(&self) {
        self.closes.fetch_min(CLOCK.now(), Ordering::SeqCst);
    }

    /// Notes that a window is in force, for the hook that the thread has switched on.
    pub fn confirm(&self, window: u64) {
        self.in_force.store(window, Ordering::SeqCst);
        self.requested.store(0, Ordering::SeqCst);
        self.look_at.store(0, Ordering::Relaxed);
    }

    /// Notes that the job opens a window, or closes one, at `now` by the schedule's clock. It comes later than the
    /// thread has noticed, for lack of a safe point: on average equally late when windows open and close. But a thread
    /// also takes time to be interrupted, and the longer it was not, the more: that part of a window is not in it, or
    /// is.
    pub fn note_change(&self, opens: bool, now: u64) {
        let noticed = self.noticed.load(Ordering::Relaxed);
        let late = (now as i64).saturating_sub(noticed as i64).clamp(-MOST_LATE, MOST_LATE);
        // What is less than nothing wraps.
        let gained = if opens { -late } else { late };
        self.wanted_open.fetch_add(gained as u64, Ordering::Relaxed);
    }

    /// Tells the thread which window is open now.
    pub fn set_in_force(&self, window: Option<u64>) {
        self.in_force.store(window.unwrap_or(NONE), Ordering::SeqCst);
        self.requested.store(0, Ordering::SeqCst);
        // Meanwhile the thread may have noticed that another should be, and asked for nothing: what was in force before
        // was right for it. SeqCst, as in `ask_for`: that sees the store above, or this sees that one.
        if self.scheduled() != window {
            self.wake();
        }
    }

    /// What it has measured. Safe in hooks.
    pub fn timing(&self) -> Timing {
        let [elapsed, wanted] = [&self.elapsed, &self.wanted_open].map(|time| time.load(Ordering::Relaxed));
        let overdue = match self.requested.load(Ordering::Relaxed) {
            0 => 0,
            since => CLOCK.cpu().saturating_sub(since),
        };
        Timing { elapsed, wanted, overdue }
    }

    fn schedule(&self) -> Schedule {
        let [frame, duty, seed] = [&self.frame, &self.duty, &self.seed].map(|part| part.load(Ordering::Relaxed));
        Schedule::new(Duration::from_nanos(frame), f64::from_bits(duty), seed)
    }

    fn run(&self, job: Job) {
        clock::sleep_exactly();
        // The time by the schedule's clock before the thread slept or waited, and from when until when a window was
        // open then, unless it opens and closes by itself.
        let mut slept: Option<(u64, Option<(u64, u64)>)> = None;
        let (mut pace, mut progress) = (Pace::default(), Progress::default());
        let (mut anticipation, mut openings) = (Anticipation::default(), Openings::default());
        // Whether it has waited for the program just now.
        let mut waited = false;
        loop {
            if !self.wanted.load(Ordering::SeqCst) {
                (slept, waited) = (None, false);
                openings = Openings::default();
                progress.pause();
                thread::park();
                continue;
            }
            let hook_time = CLOCK.hooks();
            let cpu = CLOCK.cpu();
            let now = cpu.saturating_sub(hook_time);
            if let Some((since, open)) = slept.take() {
                let (opens, closes) =
                    open.unwrap_or_else(|| (self.opens.load(Ordering::SeqCst), self.closes.load(Ordering::SeqCst)));
                // It may seem to go back where the hook's time was not up to date.
                self.elapsed.fetch_add(now.saturating_sub(since), Ordering::Relaxed);
                let wanted = now.min(closes).saturating_sub(since.max(opens));
                self.wanted_open.fetch_add(wanted, Ordering::Relaxed);
            }
            let real = clock::monotonic();
            progress.record(real, cpu);
            let schedule = self.schedule();
            let length = schedule.window();
            let (open, delay) = if self.toggle.load(Ordering::SeqCst) != JOBS {
                if self.is_direct() {
                    let running = activity::is_running();
                    let reach = Progress::reach(length, running);
                    if let Some(opening) = openings.due(schedule, now, running, reach) {
                        self.get_ready(opening, length, now, job);
                    }
                }
                (None, progress.until_ready(openings.until_next(now), length))
            } else {
                if self.too_early.swap(false, Ordering::SeqCst) {
                    anticipation.undo();
                }
                let moment = anticipation.at(schedule, now);
                let Moment { on, window, .. } = moment;
                let left = anticipation.until_change(now, pace.slowdown(moment, now, hook_time));
                if on {
                    self.early.store(anticipation.early(), Ordering::Relaxed);
                    let least = progress.until_close(anticipation.least(now), length);
                    self.ends.store(real.saturating_sub(hook_time).saturating_add(least), Ordering::Relaxed);
                }
                let scheduled = if on { window } else { NONE };
                if self.scheduled.load(Ordering::SeqCst) != scheduled {
                    self.noticed.store(now, Ordering::Relaxed);
                }
                self.ask_for(scheduled, cpu, job);
                if on {
                    (Some((0, u64::MAX)), progress.until_close(left, length))
                } else {
                    (Some((0, 0)), progress.until_open(left, length))
                }
            };
            // Also of a wait: it may take the thread long to notice that the program goes on.
            slept = Some((now, open));
            // A program that runs for moments only need not be seen to run: it has since it was waited for.
            if waited || activity::is_running() {
                waited = false;
                thread::park_timeout(Duration::from_nanos(delay));
            } else {
                self.ends.store(NONE, Ordering::Relaxed);
                progress.pause();
                activity::wait();
                waited = true;
            }
            self.ends.store(NONE, Ordering::Relaxed);
        }
    }

    /// Asks for the job if the window that is scheduled, or none, is not in force.
    fn ask_for(&self, scheduled: u64, cpu: u64, job: Job) {
        self.scheduled.store(scheduled, Ordering::SeqCst);
        if self.in_force.load(Ordering::SeqCst) == scheduled {
            return self.requested.store(0, Ordering::SeqCst);
        }
        let since = cpu.max(1);
        let first = self.requested.compare_exchange(0, since, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        self.request(job);
        // A job that was there first may have come in between.
        if first && self.in_force.load(Ordering::SeqCst) == scheduled {
            let _ = self.requested.compare_exchange(since, 0, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    /// Switches the hook on for a window of this length, at `now` by the schedule's clock. The first allocation after
    /// it opens begins it, the first after its end switches the hook off.
    fn get_ready(&self, Opening { window, opens }: Opening, length: u64, now: u64, job: Job) {
        // Unless the hook has noticed that already.
        self.note_end();
        // Nobody may take its times for those of the one before.
        self.scheduled.store(NONE, Ordering::SeqCst);
        self.opens.store(opens, Ordering::SeqCst);
        self.closes.store(opens.saturating_add(length), Ordering::SeqCst);
        self.put_off_look(opens, now);
        self.scheduled.store(window, Ordering::SeqCst);
        self.act(|| {
            let flags = EventFlags::known().filter(|_| self.is_direct());
            if !flags.is_some_and(|flags| flags.switch(true)) {
                safepoint::request(job);
            }
        });
    }

    fn request(&self, job: Job) {
        self.act(|| safepoint::request(job));
    }

    /// Calls the VM, or switches the hook on, unless that is not wanted any more.
    fn act(&self, action: impl FnOnce()) {
        // See `wait_for_action`.
        self.acting.store(true, Ordering::SeqCst);
        if self.wanted.load(Ordering::SeqCst) {
            action();
        }
        self.acting.store(false, Ordering::SeqCst);
    }
}
