//! Intervals, as the clocks measure them.

use super::Threads;
use super::interval::Interval;
use super::state::State;
use crate::vm::clock;
use crate::vm::cpu_clock::{NativeId, native_threads, thread_cpu_of, thread_name};
use std::collections::{HashMap, HashSet};

impl State {
    pub(super) fn begin_interval(&mut self) {
        self.ended = 0;
        self.process = clock::process_cpu();
        self.began = clock::monotonic();
        self.natives = self.others();
    }

    /// The CPU times of the threads that have no record.
    fn others(&self) -> HashMap<NativeId, u64> {
        if self.options.threads == Threads::These {
            return HashMap::new();
        }
        let recorded: HashSet<NativeId> = self.records.iter().map(|record| record.native).collect();
        let others = native_threads().into_iter().filter(|native| !recorded.contains(native));
        others.filter_map(|native| Some((native, thread_cpu_of(native)?))).collect()
    }

    /// The interval that ended with the last stop, or else ends now.
    pub fn take_interval(&mut self, running: bool) -> Interval {
        let waiting = self.ended_interval.take();
        if running { self.end_interval() } else { waiting.unwrap_or_default() }
    }

    /// Keeps an interval for the next flush, which did not work.
    pub fn keep_interval(&mut self, interval: Interval, running: bool) {
        let stopped = self.ended_interval.as_mut().filter(|_| running);
        if let Some(later) = stopped {
            // Another thread has stopped it meanwhile.
            later.ruby += interval.ruby;
            later.process += interval.process;
            later.natives.extend(interval.natives);
            later.began = interval.began;
            later.nanoseconds += interval.nanoseconds;
        } else if running {
            self.ended += interval.ruby;
            self.process = self.process.saturating_sub(interval.process);
            self.kept_natives = interval.natives;
            self.began = interval.began;
        } else {
            self.ended_interval = Some(interval);
        }
    }

    pub(super) fn end_interval(&mut self) -> Interval {
        let now = clock::monotonic();
        let mut ruby = std::mem::take(&mut self.ended);
        self.records.retain_mut(|record| {
            let time = record.end_interval();
            ruby += time.unwrap_or_else(|| record.accounted());
            time.is_some()
        });
        // Those of threads that have ended may have had timers.
        self.may_retry = true;
        let mut natives = std::mem::take(&mut self.kept_natives);
        for (native, time) in self.others() {
            let used = time.saturating_sub(self.natives.get(&native).copied().unwrap_or(0));
            if used > 0 {
                natives.push((thread_name(native), used));
            }
        }
        natives.sort_unstable();
        let process = match self.options.threads {
            Threads::All => clock::process_cpu().saturating_sub(self.process),
            Threads::These => ruby,
        };
        let interval = Interval { ruby, process, natives, began: self.began, nanoseconds: now - self.began };
        self.begin_interval();
        interval
    }
}
