//! What the thread does.

use super::{JOBS, NONE, Timer};
use crate::collector::windows::program_clock::CLOCK;
use crate::vm::event_flags::EventFlags;
use crate::vm::safepoint::{self, Job};
use crate::vm::{activity, clock};
use memprofiler_core::windows::{Anticipation, Moment, Opening, Openings, Pace, Progress, Schedule};
use std::sync::atomic::Ordering;
use std::thread::{park, park_timeout};
use std::time::Duration;

impl Timer {
    pub(super) fn run(&self, job: Job) {
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
                park();
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
                        self.get_ready(opening, length, job);
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
                park_timeout(Duration::from_nanos(delay));
            } else {
                self.ends.store(NONE, Ordering::Relaxed);
                progress.pause();
                activity::wait();
                waited = true;
            }
            self.ends.store(NONE, Ordering::Relaxed);
        }
    }

    pub(super) fn schedule(&self) -> Schedule {
        let [frame, duty, seed] = [&self.frame, &self.duty, &self.seed].map(|part| part.load(Ordering::Relaxed));
        Schedule::new(Duration::from_nanos(frame), f64::from_bits(duty), seed)
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

    /// Switches the hook on for a window of this length. When the hook first looks after it opens it begins, when it
    /// first looks after its end the hook is switched off.
    fn get_ready(&self, Opening { window, opens }: Opening, length: u64, job: Job) {
        // Unless the hook has noticed that already.
        self.note_end();
        // Nobody may take its times for those of the one before.
        self.scheduled.store(NONE, Ordering::SeqCst);
        self.opens.store(opens, Ordering::SeqCst);
        self.closes.store(opens.saturating_add(length), Ordering::SeqCst);
        // Until the hook has looked, objects count as in the window before if the last one it looked at was.
        self.look_at.end();
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
