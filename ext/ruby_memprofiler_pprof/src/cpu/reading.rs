//! Reads the stacks of threads that have ticked.

use super::interval::Values;
use super::record::Weighted;
use super::state::State;
use crate::allocator::reserve;
use crate::collector::stacks::{BacktraceMethod, Origin};
use crate::vm::cpu_clock::native_id;
use crate::vm::place::TickFrame;
use crate::vm::ticks::Doing;
use crate::vm::{labels, ractor, threads};
use memprofiler_core::stack_tree::StackId;
use rb_sys::VALUE;

/// The frame on top of what allocated, while garbage is collected.
const COLLECTION: &str = "(garbage collection)";
/// The frame of a fiber or thread that begins or ends, and has no other.
const NO_CODE: &str = "(no Ruby code)";
/// The label of CPU time that was used without the GVL.
const RELEASED: (&str, &str) = ("gvl", "released");

impl State {
    /// Reads the stacks of the threads that have ticked.
    ///
    /// # Safety
    /// Must run on a Ruby thread with its Ractor's GVL held, in a hook or at a safe point; `holder` must be alive, and
    /// mark the sites and threads.
    pub unsafe fn read_stacks(&mut self, holder: VALUE) {
        let native = native_id();
        // The threads of other Ractors may be running, and which thread a shared native thread runs is not known. If a
        // stack cannot be read from here, its thread will do so itself.
        let reads_others =
            ractor::is_main() && !self.shares_natives && self.sites.stacks.method() == BacktraceMethod::ControlFrames;
        for index in 0..self.records.len() {
            let record = &self.records[index];
            if !record.has_ticks() {
                continue;
            }
            let thread = if record.native == native {
                threads::current()
            } else if reads_others && record.is_main {
                record.thread
            } else {
                continue;
            };
            while let Some(weighted) = self.records[index].take() {
                // SAFETY: the thread runs, or is another one of the main Ractor, as this one is: it stands still
                // without the GVL.
                unsafe { self.add(thread, weighted, holder) };
            }
        }
    }

    /// # Safety
    /// As for [`read_stacks`](Self::read_stacks); `thread` must be of this Ractor, and marked.
    unsafe fn add(&mut self, thread: VALUE, weighted: Weighted, holder: VALUE) {
        let Weighted { ticks, weight } = weighted;
        self.samples += ticks.count;
        // SAFETY: as required above.
        let read = unsafe { self.read_stack(thread, ticks.place, holder) };
        let stacks = &mut self.sites.stacks;
        let stack = match ticks.doing {
            Doing::Running => read,
            Doing::Collecting => stacks.with_frame(read, COLLECTION),
            Doing::Released => stacks.with_label(read, RELEASED.0, RELEASED.1),
        };
        if ticks.doing != Doing::Running {
            stacks.release(read);
        }
        if !self.sums.add(stack, Values { samples: ticks.count as f64, nanoseconds: weight }) {
            stacks.release(stack);
        }
    }

    /// The stack of a thread, as it was at `place` if that is known; with a reference for the caller.
    ///
    /// # Safety
    /// As for [`add`](Self::add).
    unsafe fn read_stack(&mut self, thread: VALUE, place: Option<TickFrame>, holder: VALUE) -> StackId {
        // SAFETY: the GVL is held, and the thread is marked.
        let context = unsafe { threads::context_of(thread) };
        // SAFETY: as above; the labels are given up below.
        let labels = if self.options.labels { unsafe { labels::of(thread) } } else { None };
        // A flush runs in the main Ractor, which must not ask Threads of others.
        let named = if self.options.thread_names && ractor::is_main() { thread } else { 0 };
        let origin = Origin { thread: named, labels: labels.as_deref() };
        let is_unknown = context.is_null() && self.sites.stacks.method() == BacktraceMethod::ControlFrames;
        let has_room = !reserve::is_low() && reserve::spare(|| self.sites.stacks.try_reserve());
        if is_unknown || !has_room {
            self.lost_stacks += 1;
            return self.sites.stacks.lose(StackId::EMPTY);
        }
        // SAFETY: the context runs, or stands still; the holder is alive.
        let read = unsafe { self.sites.read_stack_at(context, place, origin, holder) };
        let stacks = &mut self.sites.stacks;
        let is_bare = stacks.is_bare(read);
        let stack = if is_bare { stacks.with_frame(read, NO_CODE) } else { read };
        if is_bare {
            stacks.release(read);
        }
        if self.sites.stacks.are_too_many() {
            self.lost_stacks += 1;
            return self.sites.stacks.lose(stack);
        }
        stack
    }
}
