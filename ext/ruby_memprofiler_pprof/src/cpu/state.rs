//! What a sampler knows.

use super::interval::{Interval, Values};
use super::record::{Record, Weighted};
use super::{Options, Statistics, Threads};
use crate::collector::classes::Class;
use crate::collector::options::{BacktraceMethod, Options as HeapOptions};
use crate::collector::sites::Sites;
use crate::collector::stacks::{Origin, Settings};
use crate::collector::walker_check;
use crate::vm::cpu_clock::{NativeId, native_id, native_threads, thread_cpu};
use crate::vm::object::Type;
use crate::vm::{clock, cpu_timer, gc, labels, threads};
use memprofiler_core::reservoir::ClassId;
use memprofiler_core::stack_tree::{StackId, StackTree};
use memprofiler_core::sums::Sums;
use rb_sys::VALUE;
use std::collections::HashMap;
use std::ffi::c_void;
use std::io;

/// The frame on top of what allocated, while garbage is collected.
const COLLECTION: &str = "(garbage collection)";
/// The label of CPU time that was used without the GVL.
const RELEASED: (&str, &str) = ("gvl", "released");

/// The sampler's data.
#[derive(Debug)]
pub struct State {
    pub options: Options,
    pub sites: Sites,
    /// What was sampled since the last flush, by stack; each has a reference to its stack.
    pub sums: Sums<StackId, Values>,
    records: Vec<Record>,
    /// The CPU time in this interval of threads that have ended.
    ended: u64,
    /// The process's CPU time at the beginning of the interval.
    process: u64,
    /// When the interval began, by the monotonic clock.
    began: u64,
    /// The CPU times of threads that are not Ruby's at the beginning of the interval.
    natives: HashMap<NativeId, u64>,
    /// What ended with the last stop, and was not flushed since.
    ended_interval: Option<Interval>,
    /// Whether native threads run several Ruby threads each.
    shares_natives: bool,
    refused: u64,
    samples: u64,
    lost_stacks: u64,
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
            ended_interval: None,
            shares_natives: false,
            refused: 0,
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
    pub fn begin(&mut self, options: Options, threads: &[(VALUE, NativeId)]) -> io::Result<()> {
        *self = Self { options, ..Self::default() };
        self.sites.stacks.configure(settings());
        self.shares_natives = cfg!(ruby_gte_3_3) && std::env::var_os("RUBY_MN_THREADS").is_some_and(|set| set == "1");
        for &(thread, native) in threads {
            if self.has_record_of(native) {
                continue;
            }
            match Record::new(thread, native, &options) {
                Ok(record) => self.records.push(record),
                // It has ended meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        self.begin_interval();
        Ok(())
    }

    /// Whether it has ever begun.
    pub fn was_started(&self) -> bool {
        self.began > 0
    }

    /// Begins anew in a forked child, which has the running thread only.
    pub fn begin_in_child(&mut self) -> io::Result<()> {
        let current = (threads::current(), native_id());
        let was_sampled = self.options.threads == Threads::All || self.records.iter().any(Record::is_current);
        self.records.drain(..).for_each(Record::forget);
        let sampled = [current];
        self.begin(self.options, if was_sampled { &sampled } else { &[] })
    }

    /// Ends sampling; the interval waits for a flush.
    pub fn end(&mut self) {
        self.ended_interval = Some(self.end_interval());
        self.records.clear();
    }

    /// The thread that runs has begun.
    ///
    /// # Safety
    /// The GVL must be held; `holder` must be alive, and mark the threads.
    pub unsafe fn add_current(&mut self, holder: VALUE) {
        let native = native_id();
        if self.shares_natives && self.has_record_of(native) {
            return;
        }
        // Of a thread that ended by an exception, of which no hook is told, and whose native thread goes on as this one.
        self.remove(|record| record.native == native);
        match Record::new(threads::current(), native, &self.options) {
            Ok(record) => {
                // SAFETY: as required above.
                unsafe { gc::write_barrier(holder, record.thread) };
                self.records.push(record);
            }
            Err(_) => self.refused += 1,
        }
    }

    fn has_record_of(&self, native: NativeId) -> bool {
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
            match record.end_interval() {
                Some(time) => {
                    self.ended += time;
                    self.natives.insert(record.native, record.interval_start);
                }
                None => self.ended += record.accounted(),
            }
        }
    }

    /// Reads the stacks of the threads that have ticked.
    ///
    /// # Safety
    /// Must run on a thread of the main Ractor with the GVL held, in a hook or at a safe point; `holder` must be alive,
    /// and mark the sites.
    pub unsafe fn read_stacks(&mut self, holder: VALUE) {
        let native = native_id();
        for index in 0..self.records.len() {
            let record = &self.records[index];
            if !record.has_ticks() {
                continue;
            }
            let thread = if record.native == native {
                threads::current()
            } else if self.shares_natives || self.sites.stacks.method() != BacktraceMethod::ControlFrames {
                // Which thread runs there is not known, or its stack cannot be read from here: it will do so itself.
                continue;
            } else {
                record.thread
            };
            if let Some(weighted) = self.records[index].take() {
                // SAFETY: the thread runs, or is another one of this Ractor, which stands still without the GVL.
                unsafe { self.add(thread, weighted, holder) };
            }
        }
    }

    /// # Safety
    /// As for [`read_stacks`](Self::read_stacks); `thread` must be of the main Ractor, and marked.
    unsafe fn add(&mut self, thread: VALUE, weighted: Weighted, holder: VALUE) {
        let Weighted { ticks, weight } = weighted;
        self.samples += ticks.all;
        // SAFETY: as required above.
        let stack = unsafe { self.read_stack(thread, holder) };
        let each = weight / ticks.all as f64;
        let mut add = |stack: StackId, ticks: u64, sites: &mut Sites| {
            let values = Values { samples: ticks as f64, nanoseconds: each * ticks as f64 };
            if ticks == 0 || !self.sums.add(stack, values) {
                sites.stacks.release(stack);
            }
        };
        if ticks.collecting > 0 {
            let collecting = self.sites.stacks.with_frame(stack, COLLECTION);
            add(collecting, ticks.collecting, &mut self.sites);
        }
        if ticks.released > 0 {
            let released = self.sites.stacks.with_label(stack, RELEASED.0, RELEASED.1);
            add(released, ticks.released, &mut self.sites);
        }
        add(stack, ticks.all - ticks.collecting - ticks.released, &mut self.sites);
    }

    /// The stack of a thread, with a reference for the caller.
    ///
    /// # Safety
    /// As for [`add`](Self::add).
    unsafe fn read_stack(&mut self, thread: VALUE, holder: VALUE) -> StackId {
        // SAFETY: the GVL is held, and the thread is marked.
        let context = unsafe { threads::context_of(thread) };
        // SAFETY: as above; the labels are given up below.
        let labels = if self.options.labels { unsafe { labels::of(thread) } } else { None };
        let origin = Origin { thread: if self.options.thread_names { thread } else { 0 }, labels: labels.as_deref() };
        if context.is_null() || !self.sites.stacks.try_reserve() {
            self.lost_stacks += 1;
            return self.sites.stacks.lose(StackId::EMPTY);
        }
        // SAFETY: the context runs, or stands still; the holder is alive.
        let stack = unsafe { self.sites.read_stack(context, origin, Type::NONE, holder) };
        if self.sites.stacks.are_too_many() {
            self.lost_stacks += 1;
            return self.sites.stacks.lose(stack);
        }
        stack
    }

    /// The id that stands for no class, with a reference for the caller.
    ///
    /// # Safety
    /// The GVL must be held, and `holder` be alive.
    pub unsafe fn no_class(&mut self, holder: VALUE) -> ClassId {
        // SAFETY: as required above.
        unsafe { self.sites.class_id(Class::Unknown, holder) }
    }

    fn begin_interval(&mut self) {
        self.ended = 0;
        self.process = clock::process_cpu();
        self.began = clock::monotonic();
        self.natives = self.others().into_iter().map(|(native, _, time)| (native, time)).collect();
    }

    /// The threads that have no record, with names and CPU times.
    fn others(&self) -> Vec<(NativeId, String, u64)> {
        if self.options.threads == Threads::These {
            return Vec::new();
        }
        let threads = native_threads().into_iter().filter(|&(native, _)| !self.has_record_of(native));
        threads.filter_map(|(native, name)| Some((native, name, thread_cpu(native)?))).collect()
    }

    /// The interval that ended with the last stop, or else ends now.
    pub fn take_interval(&mut self, running: bool) -> Interval {
        let waiting = self.ended_interval.take();
        if running { self.end_interval() } else { waiting.unwrap_or_default() }
    }

    /// Keeps an interval for the next flush, which did not work.
    pub fn keep_interval(&mut self, interval: Interval, running: bool) {
        if running {
            self.ended += interval.ruby;
            self.process = self.process.saturating_sub(interval.process);
            self.began = interval.began;
        } else {
            self.ended_interval = Some(interval);
        }
    }

    fn end_interval(&mut self) -> Interval {
        let now = clock::monotonic();
        let mut ruby = std::mem::take(&mut self.ended);
        self.records.retain_mut(|record| {
            let time = record.end_interval();
            ruby += time.unwrap_or_else(|| record.accounted());
            time.is_some()
        });
        let mut natives: Vec<(String, u64)> = Vec::new();
        for (native, name, time) in self.others() {
            let used = time.saturating_sub(self.natives.get(&native).copied().unwrap_or(0));
            if used > 0 {
                natives.push((name, used));
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

    /// Figures.
    pub fn statistics(&self) -> Statistics {
        let Options { signal, .. } = self.options;
        Statistics {
            options: self.options,
            threads: self.records.len(),
            refused: self.refused,
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
