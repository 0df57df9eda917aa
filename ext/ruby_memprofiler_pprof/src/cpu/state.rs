//! What a sampler knows.

use super::interval::{Interval, Values};
use super::record::Record;
use super::{Options, Statistics, Threads, discovery};
use crate::collector::classes::Class;
use crate::collector::options::{BacktraceMethod, Options as HeapOptions};
use crate::collector::sites::Sites;
use crate::collector::stacks::Settings;
use crate::collector::walker_check;
use crate::vm::cpu_clock::{NativeId, native_id, thread_cpu_of};
use crate::vm::{clock, cpu_timer, gc, threads};
use memprofiler_core::reservoir::ClassId;
use memprofiler_core::stack_tree::{StackId, StackTree};
use memprofiler_core::sums::Sums;
use rb_sys::VALUE;
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::io;

/// The sampler's data.
#[derive(Debug)]
pub struct State {
    pub options: Options,
    pub sites: Sites,
    /// What was sampled since the last flush, by stack; each has a reference to its stack.
    pub sums: Sums<StackId, Values>,
    pub(super) records: Vec<Record>,
    /// The CPU time in this interval of threads that have ended.
    pub(super) ended: u64,
    /// The process's CPU time at the beginning of the interval.
    pub(super) process: u64,
    /// When the interval began, by the monotonic clock.
    pub(super) began: u64,
    /// The CPU times of threads that are not Ruby's at the beginning of the interval.
    pub(super) natives: HashMap<NativeId, u64>,
    /// Of an interval that a flush gave back: the CPU times of such threads, by name.
    pub(super) kept_natives: Vec<(String, u64)>,
    /// What ended with the last stop, and was not flushed since.
    pub(super) ended_interval: Option<Interval>,
    /// Whether native threads run several Ruby threads each.
    pub(super) shares_natives: bool,
    is_running: bool,
    /// How often it has begun: what a flush holds is of no use after another start or a fork.
    pub beginnings: u64,
    /// The threads that got no timer.
    refused: HashSet<NativeId>,
    /// Whether a timer was freed since then.
    pub(super) may_retry: bool,
    pub(super) samples: u64,
    pub(super) lost_stacks: u64,
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

impl Default for State {
    fn default() -> Self {
        Self {
            options: Options::default(),
            sites: Sites::new(settings(), nothing),
            sums: Sums::new(),
            records: Vec::new(),
            ended: 0,
            process: 0,
            began: 0,
            natives: HashMap::new(),
            kept_natives: Vec::new(),
            ended_interval: None,
            shares_natives: false,
            is_running: false,
            beginnings: 0,
            refused: HashSet::new(),
            may_retry: false,
            samples: 0,
            lost_stacks: 0,
        }
    }
}

fn settings() -> Settings {
    let HeapOptions { max_frames, max_stack_bytes, .. } = HeapOptions::default();
    Settings {
        method: walker_check::usable(BacktraceMethod::ControlFrames),
        max_frames,
        max_nodes: max_stack_bytes / StackTree::BYTES_PER_NODE,
    }
}

impl State {
    /// Begins to sample these threads. What was sampled before and not flushed is forgotten.
    ///
    /// # Safety
    /// The GVL must be held; each Thread must be alive, run by the native thread given with it, and be marked as long as
    /// it has a record.
    pub unsafe fn begin(&mut self, options: Options, threads: &[(VALUE, NativeId)]) -> io::Result<()> {
        *self = Self { options, beginnings: self.beginnings + 1, is_running: true, ..Self::default() };
        self.sites.stacks.configure(settings());
        self.shares_natives = threads::share_natives();
        for &(thread, native) in threads {
            if self.has_record_of(native) {
                continue;
            }
            // SAFETY: as required above.
            match unsafe { Record::new(thread, native, &options) } {
                Ok(record) => self.records.push(record),
                // It has ended meanwhile.
                Err(_) if thread_cpu_of(native).is_none() => {}
                Err(error) if self.records.is_empty() => {
                    self.is_running = false;
                    return Err(error);
                }
                Err(_) => _ = self.refused.insert(native),
            }
        }
        match options.threads {
            Threads::All => discovery::want(self.beginnings, &options),
            Threads::These => discovery::end(),
        }
        // The thread that starts has a record.
        discovery::know();
        self.begin_interval();
        Ok(())
    }

    /// Whether it has ever begun.
    pub fn was_started(&self) -> bool {
        self.began > 0
    }

    /// Forgets what a process has sampled that stopped before it forked this one.
    pub fn forget_parent(&mut self) {
        if self.was_started() {
            *self = Self { options: self.options, beginnings: self.beginnings + 1, ..Self::default() };
            self.begin_without_threads();
        }
    }

    /// Has an interval without samples begin now, which can be flushed.
    pub fn begin_without_threads(&mut self) {
        self.began = clock::monotonic();
    }

    /// Begins anew in a forked child, which has the running thread only.
    ///
    /// # Safety
    /// The GVL must be held, and the threads be marked.
    pub unsafe fn begin_in_child(&mut self) -> io::Result<()> {
        let current = (threads::current(), native_id());
        let was_sampled = self.options.threads == Threads::All || self.records.iter().any(Record::is_current);
        // Of threads that the child lacks.
        discovery::end();
        let sampled = [current];
        // SAFETY: the running thread, which will be marked.
        unsafe { self.begin(self.options, if was_sampled { &sampled } else { &[] }) }
    }

    /// Ends sampling; the interval waits for a flush.
    pub fn end(&mut self) {
        discovery::end();
        if !std::mem::replace(&mut self.is_running, false) {
            return;
        }
        self.ended_interval = Some(self.end_interval());
        self.records.clear();
    }

    /// The thread that runs has begun.
    ///
    /// # Safety
    /// The GVL must be held; `holder` must be alive, and mark the threads.
    pub unsafe fn add_current(&mut self, holder: VALUE) {
        let native = native_id();
        discovery::know();
        if self.shares_natives && self.has_record_of(native) {
            return;
        }
        // Of a thread that ended by an exception, of which no hook is told, and whose native thread goes on as this
        // one.
        self.remove(|record| record.native == native);
        let thread = threads::current();
        let options = self.options;
        // SAFETY: the GVL is held; the running thread, which the holder marks from now on.
        let new = || unsafe { Record::new(thread, native, &options) };
        let record = new().or_else(|_| {
            // Threads that have ended unnoticed may have all timers.
            self.remove(|record| thread_cpu_of(record.native).is_none());
            discovery::forget_ended();
            new()
        });
        match record {
            Ok(record) => {
                // SAFETY: as required above.
                unsafe { gc::write_barrier(holder, record.thread) };
                self.records.push(record);
            }
            Err(_) => {
                self.refused.insert(native);
                self.may_retry = false;
            }
        }
    }

    /// Adds the thread that runs if its native thread has no record, and all are sampled.
    ///
    /// # Safety
    /// As for [`add_current`](Self::add_current).
    pub unsafe fn find_current(&mut self, holder: VALUE) {
        let native = native_id();
        let is_found = self.options.threads == Threads::All
            && !self.has_record_of(native)
            && (self.may_retry || !self.refused.contains(&native));
        if cfg!(ruby_gte_3_3) && is_found && self.is_running {
            // SAFETY: as required above.
            unsafe { self.add_current(holder) };
        } else {
            discovery::know();
        }
    }

    pub(super) fn has_record_of(&self, native: NativeId) -> bool {
        self.records.iter().any(|record| record.native == native)
    }

    /// The thread that runs is about to end.
    ///
    /// # Safety
    /// As for [`read_stacks`](Self::read_stacks).
    pub unsafe fn remove_current(&mut self, holder: VALUE) {
        if self.shares_natives {
            return;
        }
        // SAFETY: as required above.
        unsafe { self.read_stacks(holder) };
        self.remove(Record::is_current);
    }

    /// Removes records. What their native threads do from now on is not Ruby's: Ruby keeps some for threads to come.
    fn remove(&mut self, which: impl Fn(&Record) -> bool) {
        while let Some(index) = self.records.iter().position(&which) {
            let mut record = self.records.swap_remove(index);
            self.may_retry = true;
            match record.end_interval() {
                Some(time) => {
                    self.ended += time;
                    self.natives.insert(record.native, record.interval_start);
                }
                None => self.ended += record.accounted(),
            }
        }
    }

    /// The id that stands for no class, with a reference for the caller.
    ///
    /// # Safety
    /// The GVL must be held, and `holder` be alive.
    pub unsafe fn no_class(&mut self, holder: VALUE) -> ClassId {
        // SAFETY: as required above.
        unsafe { self.sites.class_id(Class::Unknown, holder) }
    }

    /// Figures.
    pub fn statistics(&self) -> Statistics {
        let Options { signal, .. } = self.options;
        Statistics {
            options: self.options,
            threads: self.records.len(),
            refused: self.refused.len() as u64,
            samples: self.samples,
            stacks: self.sums.len(),
            lost_stacks: self.lost_stacks,
            signals: cpu_timer::signals(),
            signal_taken: signal != 0 && !cpu_timer::is_ours(signal),
        }
    }

    /// The Threads with records.
    pub fn threads(&self) -> impl Iterator<Item = VALUE> {
        self.records.iter().map(|record| record.thread)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.sites.bytes() + self.sums.bytes() + self.records.capacity() * size_of::<Record>()
    }
}
