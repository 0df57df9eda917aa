//! Visits the live samples: measures each and adds it up.

use super::extract::Key;
use super::{CLOCK_STRIDE, Flush, FlushFailure};
use crate::collector::classes::Class;
use crate::collector::resolve::Owner;
use crate::collector::sample_types::Values;
use crate::collector::sites::Unnamed;
use crate::collector::state::State;
use crate::faults;
use crate::vm::{class_names, gc, memsize, protect};
use magnus::Error;
use memprofiler_core::reservoir::{ClassId, LiveSample};
use memprofiler_core::stack_tree::StackId;
use memprofiler_core::stratum::Stratum;
use rb_sys::VALUE;

/// Why a slice of work ended.
enum Pause {
    Done,
    OutOfTime,
    Unnamed(Unnamed),
    SizeUnknown(VALUE),
}

impl Flush<'_> {
    /// Visits all samples that were alive when the flush began. Walking downwards visits each of them even if some die
    /// meanwhile, when the last sample takes the place of the dead one.
    pub(super) fn live_samples(&mut self) -> Result<(), FlushFailure> {
        let collector = self.collector;
        let (mut position, mut order) = (usize::MAX, 0);
        let mut measured = None;
        loop {
            // The dead must be gone before anything in the live set is read, even after Ruby code ran below.
            self.settle()?;
            faults::point("flush: live samples");
            self.check()?;
            let pause = collector.state.with(|state| {
                // The walk may have missed what a collection moved up.
                let live = state.reservoir.live();
                if order != live.reorderings() || position > live.len() {
                    (position, order) = (live.len(), live.reorderings());
                }
                self.visit(state, &mut position, &mut measured)
            });
            match pause {
                Pause::Done => return Ok(()),
                Pause::OutOfTime => {}
                Pause::Unnamed(unnamed) => collector.name(self.pace.mute, unnamed)?,
                Pause::SizeUnknown(object) => {
                    // SAFETY: the object was alive in the slice that just ended, and since then neither Ruby code nor a
                    // collection has run.
                    let size = unsafe { memsize::of_any(self.ruby, object) }?;
                    // An extension whose size function raises is no reason to fail.
                    // SAFETY: it stays alive on this stack while its extension measures it.
                    let size = size.unwrap_or_else(|| unsafe { memsize::slot_size(object) });
                    measured = Some((object, size));
                }
            }
            self.rest()?;
        }
    }

    /// Ensures that everything in the live set is alive. With mark bits it is, unless a collection was missed.
    /// Finishing a sweep can itself encounter a dead Ractor, so that check comes last.
    pub(super) fn settle(&self) -> Result<(), Error> {
        if !self.collector.uses_mark_bits() {
            let info = gc::Info::get(self.ruby)?;
            protect(|| info.settle(self.ruby))?;
        }
        self.collector.check_collections(self.ruby)
    }

    /// Visits samples below `position` until something is needed that runs Ruby code. Reads objects, but runs nothing
    /// that could free one. Nor can other Ractors free one: a collection waits until all of them have reached a point
    /// where they take the VM's lock or check interrupts, and nothing here does that.
    fn visit(&mut self, state: &mut State, position: &mut usize, measured: &mut Option<(VALUE, usize)>) -> Pause {
        let now = gc::count();
        faults::point("flush: visit");
        for step in 1.. {
            let samples = state.reservoir.live().samples();
            *position = (*position).min(samples.len());
            if *position == 0 {
                return Pause::Done;
            }
            let sample = samples[*position - 1];
            if state.reservoir.is_due(&sample) {
                if let Err(pause) = self.visit_one(state, *position - 1, sample, now, measured) {
                    return pause;
                }
            }
            *position -= 1;
            if step % CLOCK_STRIDE == 0 && self.pace.is_over() {
                return Pause::OutOfTime;
            }
        }
        Pause::Done
    }

    fn visit_one(
        &mut self,
        state: &mut State,
        position: usize,
        sample: LiveSample,
        now: u32,
        measured: &mut Option<(VALUE, usize)>,
    ) -> Result<(), Pause> {
        let object = sample.address as VALUE;
        let stack = state.sites.named_stack(sample.stack).map_err(Pause::Unnamed)?;
        let raw_class = self.class_of(state, sample);
        let class = state.sites.named_class(raw_class).map_err(Pause::Unnamed);
        // SAFETY: `object` is alive, as in `class_of`: looking up its class allocated nothing through the VM.
        let known = class.and_then(|class| Ok((class, unsafe { size_of(object, measured) }?)));
        let visited = known.map(|(class, size)| self.add(state, position, sample, (stack, class), size, now));
        state.sites.classes.release(raw_class);
        visited
    }

    /// The class of a sampled object, with a reference for the caller.
    fn class_of(&self, state: &mut State, sample: LiveSample) -> ClassId {
        let object = sample.address as VALUE;
        // SAFETY: `object` is alive. `live_samples` has settled before this slice: since then the live set contains
        // only what the last mark phase marked, or what was allocated later. Nothing that runs in a slice can free an
        // object.
        let visible = if state.options.object_class { unsafe { class_names::class_of(object) } } else { None };
        match visible {
            // SAFETY: the GVL is held. The object keeps its class alive; the holder of a collector with samples is a
            // root.
            Some(class) => unsafe { state.sites.class_id(Class::Object(class), self.collector.holder.get()) },
            None => {
                state.sites.classes.retain(sample.class);
                sample.class
            }
        }
    }

    /// Adds a sample, whose stack and class are known by these names, to the profile.
    fn add(
        &mut self,
        state: &mut State,
        position: usize,
        sample: LiveSample,
        (stack, class): (StackId, ClassId),
        size: usize,
        now: u32,
    ) {
        let weight = state.reservoir.weight(&sample);
        let bytes = weight * size as f64;
        let age = now.wrapping_sub(sample.born);
        let mut values = Values::default();
        if age >= self.options.min_age {
            (values.retained, values.retained_bytes) = (weight, bytes);
            self.result.heap_samples += 1;
        }
        if sample.unreported.contain(self.reader) && state.options.track_allocations {
            (values.allocations, values.allocated_bytes) = (weight, bytes);
            self.result.allocation_samples += 1;
        }
        let age = state.options.object_age.then(|| quantised(age));
        let stratum = Stratum::of(state.reservoir.window(&sample), weight, size);
        self.sums.add(Key { stack, class, age, stratum }, values);
        if let Some(visited) = state.reservoir.visited(position) {
            (visited.stack, visited.class) = (stack, class);
            visited.unreported = visited.unreported.without(self.reader);
        }
        state.sites.retain(stack, class);
        state.sites.release_source(sample.stack, sample.class);
    }
}

/// The size of `object`, which may just have been measured.
///
/// # Safety
/// The GVL must be held, and the object be alive.
unsafe fn size_of(object: VALUE, measured: &mut Option<(VALUE, usize)>) -> Result<usize, Pause> {
    // SAFETY: as required above.
    if let Some(size) = unsafe { memsize::of_plain_at_once(object) } {
        return Ok(size);
    }
    match measured.take() {
        Some((of, size)) if of == object => Ok(size),
        _ => Err(Pause::SizeUnknown(object)),
    }
}

/// A power of two above 3, so that ages do not split a stack into too many samples.
fn quantised(age: u32) -> u32 {
    if age < 4 { age } else { 1 << age.ilog2() }
}
