//! What an allocation and a death do to what a collector knows.

use super::State;
use crate::collector::contexts::Origin;
use crate::collector::keys::Class;
use crate::collector::mute::is_muted;
use crate::vm::errno::SavedErrno;
use crate::vm::hooks::TraceArg;
use crate::vm::marks::Marks;
use crate::vm::object::{Type, class, flags};
use crate::vm::{gc, labels, memsize, threads};
use memprofiler_core::live_set::{LiveSet, Sample};
use memprofiler_core::tally::{Allocated, Kind};
use rb_sys::VALUE;

impl State {
    /// Takes the object of a NEWOBJ event as a sample; `holder` is the Ruby object that marks this state.
    ///
    /// # Safety
    /// In a NEWOBJ hook; `holder` alive.
    pub unsafe fn allocated(&mut self, arg: &TraceArg, holder: VALUE) {
        if is_muted(arg.context) || !self.only.includes(arg.context) {
            return;
        }
        if !self.reserve() {
            return;
        }
        let object = arg.object;
        // SAFETY: flags and class of a new object are set.
        let (flags, class) = unsafe { (flags(object), class(object)) };
        let class = self.class_id(Class::of_header(flags, class), holder);
        // SAFETY: in a hook, in the running fiber.
        let labels = if self.options.labels { unsafe { labels::current() } } else { None };
        let origin = Origin {
            thread: if self.options.thread_names { threads::current() } else { 0 },
            labels: labels.as_deref().filter(|labels| !labels.pairs().is_empty()),
        };
        // SAFETY: the VM runs the hook in this context.
        let stack = unsafe { self.capture.stack(self.method, arg.context, origin, Type::of_flags(flags), holder) };
        self.counters.samples += 1;
        let replaced = self.live.insert(Sample {
            address: object,
            stack,
            class,
            born: gc::count(),
            rate: self.rate,
            seen: self.flush_number,
            unreported: self.readers,
        });
        if let Some(dead) = replaced {
            self.counters.missed_deaths += 1;
            self.bury(&dead, memsize::slot_size(object));
        }
        while self.live.len() > self.options.max_heap_samples {
            self.halve();
        }
        if self.capture.stacks.len() > self.stack_limit {
            self.make_room_for_stacks(self.max_stack_nodes / 2);
        }
    }

    /// Takes note of the death of an object. Whether it was sampled is decided without touching it.
    ///
    /// # Safety
    /// In a FREEOBJ hook for `object`.
    #[inline]
    pub unsafe fn freed(&mut self, object: VALUE) {
        if let Some(sample) = self.live.remove(object) {
            let _errno = SavedErrno::new();
            // SAFETY: the object passed to the hook is intact.
            let size = unsafe { self.size_at_death(&sample) };
            self.bury(&sample, size);
        }
    }

    /// Removes the samples that a garbage collection has found dead.
    ///
    /// # Safety
    /// In a GC_END_MARK hook.
    pub unsafe fn collected(&mut self, major: bool) {
        let Some(marks) = self.marks else { return };
        let _errno = SavedErrno::new();
        let now = gc::count();
        let mut live = std::mem::replace(&mut self.live, LiveSet::by_position());
        live.collect(
            major,
            // SAFETY: a sample in the live set was alive when the mark phase began.
            |sample, old| unsafe {
                marks.fate(sample.address as VALUE, !old && now.wrapping_sub(sample.born) >= Marks::OLD_AGE)
            },
            |sample| {
                // SAFETY: what is found dead at the end of marking is intact until it is swept.
                let size = unsafe { self.size_at_death(&sample) };
                self.bury(&sample, size);
            },
        );
        self.live = live;
    }

    /// The bytes of a sample's object that is dying, if they are still wanted.
    ///
    /// # Safety
    /// In a hook in which the object is intact.
    unsafe fn size_at_death(&self, sample: &Sample) -> usize {
        let object = sample.address as VALUE;
        if !sample.unreported.is_empty() && self.options.track_allocations {
            // SAFETY: the caller's promise.
            unsafe { memsize::of_plain(object) }.unwrap_or_else(|| memsize::slot_size(object))
        } else {
            0
        }
    }

    /// Forgets which objects are alive if collections were missed, and with them deaths. What is known of allocations
    /// stays.
    pub fn distrust_after(&mut self, missed: u32) {
        if missed == 0 {
            return;
        }
        let _errno = SavedErrno::new();
        self.counters.missed_collections += u64::from(missed);
        for sample in self.live.drain() {
            // The dead cannot be asked: even the page that their slot was on may be gone.
            self.bury(&sample, memsize::SMALLEST_SLOT);
        }
    }

    /// Counts the allocation of a sample that is no longer in the live set, and gives up its references.
    pub(super) fn bury(&mut self, sample: &Sample, size: usize) {
        let &Sample { stack, class, rate, unreported, .. } = sample;
        if !unreported.is_empty() && self.options.track_allocations {
            let weight = self.rates.weight(rate);
            let allocated = Allocated { objects: weight, bytes: weight * size as f64 };
            self.count_allocated((stack, class, unreported), allocated);
        } else {
            self.release(stack, class);
        }
    }

    /// Adds to the tally, which takes over one reference to stack and class. Readers that went while a flush held it are
    /// not told.
    pub fn count_allocated(&mut self, (stack, class, readers): Kind, allocated: Allocated) {
        let readers = readers.common(self.readers);
        if readers.is_empty() || !self.tally.add((stack, class, readers), allocated) {
            self.release(stack, class);
        }
    }
}
