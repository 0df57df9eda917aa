//! How an allocation and a death change what a collector knows.

use super::State;
use crate::collector::classes::Class;
use crate::collector::mute::is_muted;
use crate::collector::naming_job;
use crate::collector::stacks::Origin;
use crate::vm::errno::SavedErrno;
use crate::vm::hooks::TraceArg;
use crate::vm::mark_bits::MarkBits;
use crate::vm::object::{Type, class, flags};
use crate::vm::{gc, labels, memsize, safepoint, span, threads};
use memprofiler_core::readers::Readers;
use memprofiler_core::reservoir::{Candidate, ClassId, LiveSample};
use memprofiler_core::stack_tree::StackId;
use memprofiler_core::stratum::Stratum;
use memprofiler_core::sums::{Allocated, TallyKey};
use rb_sys::VALUE;

impl State {
    /// Samples the object of a NEWOBJ event, the candidate; `holder` is the Ruby object that marks this state.
    ///
    /// # Safety
    /// Must be called in a NEWOBJ hook; `holder` must be alive.
    pub unsafe fn allocated(&mut self, candidate: Candidate, arg: &TraceArg, holder: VALUE) {
        if is_muted(arg.context) || !self.only.includes(arg.context) {
            return;
        }
        if !self.reserve() {
            return;
        }
        let object = arg.object;
        // SAFETY: flags and class of a new object are set.
        let (flags, class) = unsafe { (flags(object), class(object)) };
        let kind = if self.options.object_class { Class::of_header(flags, class) } else { Class::Unknown };
        // SAFETY: in a hook; the object keeps its class alive, and the holder is alive.
        let class = unsafe { self.sites.class_id(kind, holder) };
        // SAFETY: in a hook; the borrow ends with this function, and the fiber continues only after the hook.
        let labels = if self.options.labels { unsafe { labels::current() } } else { None };
        let origin = Origin {
            thread: if self.options.thread_names { threads::current() } else { 0 },
            labels: labels.as_deref().filter(|labels| !labels.pairs().is_empty()),
        };
        // SAFETY: the VM runs the hook in this context.
        let stack = unsafe { self.sites.read_stack(arg.context, origin, Type::of_flags(flags), holder) };
        // SAFETY: in a hook.
        let span = if self.options.labels { unsafe { span::current() } } else { None };
        let stack = span.map_or(stack, |span| self.sites.stacks.in_span(stack, span));
        self.counters.samples += 1;
        let sample = LiveSample::new(object, stack, class, gc::count(), self.readers);
        let (reservoir, mut departures) = self.split();
        let replaced = reservoir.insert(candidate, sample, |sample| departures.release_sample(&sample));
        if let Some(dead) = replaced {
            // SAFETY: the slot is that of the new object.
            departures.record(&dead, unsafe { memsize::slot_size(object) });
            self.counters.missed_deaths += 1;
            self.bound_tally();
        }
        if self.sites.stacks.are_too_many() {
            self.make_room_for_stacks(self.sites.stacks.max_nodes() / 2);
        }
        if self.sites.is_naming_due() && self.flushing.is_none() {
            safepoint::request(naming_job::run);
        }
    }

    /// Records the death of an object. Whether it was sampled is decided without touching it.
    ///
    /// # Safety
    /// Must be called in a FREEOBJ hook for `object`.
    #[inline]
    pub unsafe fn freed(&mut self, object: VALUE) {
        let (reservoir, mut departures) = self.split();
        if let Some(departed) = reservoir.remove(object) {
            let _errno = SavedErrno::new();
            // SAFETY: the object that died is the one that this FREEOBJ hook is for, which is intact.
            unsafe { departures.record_dying(&departed) };
            self.bound_tally();
        }
    }

    /// Removes the samples that a garbage collection has found dead.
    ///
    /// # Safety
    /// Must be called in a GC_END_MARK hook.
    pub unsafe fn collected(&mut self, major: bool) {
        let Some(marks) = self.mark_bits else { return };
        let _errno = SavedErrno::new();
        let now = gc::count();
        let (reservoir, mut departures) = self.split();
        reservoir.collect(
            major,
            // SAFETY: a sample in the live set was alive when the mark phase began, so no earlier collection swept it.
            |sample, old| unsafe {
                marks.fate(sample.address as VALUE, !old && now.wrapping_sub(sample.born) >= MarkBits::OLD_AGE)
            },
            // SAFETY: an object found dead at the end of marking is intact until it is swept.
            |departed| unsafe { departures.record_dying(&departed) },
        );
        self.bound_tally();
    }

    /// If collections, and with them deaths, were missed, forgets which objects are alive. Allocations stay.
    pub fn distrust_after(&mut self, missed: u32) {
        if missed == 0 {
            return;
        }
        let _errno = SavedErrno::new();
        self.counters.missed_collections += u64::from(missed);
        let (reservoir, mut departures) = self.split();
        // The dead must not be touched: even the page of their slot may be gone.
        reservoir.drain(|departed| departures.record(&departed, memsize::SMALLEST_SLOT));
        self.bound_tally();
    }

    /// Like [`count_allocated`](Self::count_allocated), but takes its own references to a named stack and class.
    pub fn count_allocated_by_name(
        &mut self,
        (stack, class): (StackId, ClassId),
        readers: Readers,
        stratum: Stratum,
        sum: Allocated,
    ) {
        self.sites.retain(stack, class);
        self.count_allocated(TallyKey { stack, class, readers, stratum }, sum);
    }
}
