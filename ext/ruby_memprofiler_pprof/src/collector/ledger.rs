//! Where the memory of the process is, with what collectors know of it.

use super::mute::Mute;
use super::retainers::site;
use super::{Collector, hooked};
use crate::vm::memory::{self, Measurement};
use crate::vm::object::{flags, type_of};
use crate::vm::{gc, gvl, memsize};
use magnus::{Error, Ruby};
use memprofiler_core::hash::Map;
use memprofiler_core::ledger::{self, Figure, HeapPage, HeldSlots, Ledger, Limit, Site};
use memprofiler_core::reservoir::LiveSample;
use memprofiler_core::stack_tree::StackId;
use rb_sys::VALUE;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// How many samples are measured, at most, if it has to be quick.
const MOST_SAMPLES: usize = 2048;
/// Of the choice of these: always the same, so that ledgers of the same heap agree.
const SEED: u64 = 0;

/// The part of a quick ledger that needs the GVL.
#[derive(Debug)]
pub struct Glance {
    glance: memory::Glance,
    object_memory: Option<Figure>,
    took: Duration,
}

/// Begins a quick ledger, with what `collector` knows, if there is one. May run Ruby code.
///
/// # Errors
/// What signals or other threads raise meanwhile.
pub fn glance(ruby: &Ruby, collector: Option<&Collector>) -> Result<Glance, Error> {
    let start = Instant::now();
    let object_memory = collector.map(|collector| collector.object_memory(ruby)).transpose()?.flatten();
    let glance = memory::glance(ruby, own_bytes(collector))?;
    Ok(Glance { glance, object_memory, took: start.elapsed() })
}

impl Glance {
    /// The ledger. Needs no GVL.
    pub fn ledger(self) -> Ledger {
        let start = Instant::now();
        let mut measurement = self.glance.measure();
        if let Some(estimated) = self.object_memory {
            measurement.account.object_memory = estimated;
        }
        ledger(measurement, self.took, start, Vec::new())
    }

    /// The ledger as a profile's comment; None if it cannot be had. Needs no GVL.
    pub fn remark(self) -> Option<String> {
        let ledger = catch_unwind(AssertUnwindSafe(|| self.ledger())).ok()?;
        serde_json::to_string(&ledger).ok().map(|json| format!("memory={json}"))
    }
}

/// What a full ledger is made of.
#[derive(Debug)]
pub struct Measured {
    measurement: Measurement,
    start: Instant,
}

/// Measures everything. `mute` is this thread's.
///
/// # Errors
/// What signals or other threads raise meanwhile.
///
/// # Safety
/// There must be no other Ractors.
pub unsafe fn measure(ruby: &Ruby, mute: &Mute) -> Result<Measured, Error> {
    let start = Instant::now();
    // SAFETY: the GVL is held, as `ruby` shows, and there are no other Ractors.
    let measurement = unsafe { memory::measure_all(ruby, own_bytes(None), || mute.lift(gvl::schedule)) }?;
    Ok(Measured { measurement, start })
}

impl Measured {
    /// The ledger, with what `collector` knows, if there is one.
    pub fn ledger(self, collector: Option<&Collector>) -> Ledger {
        let pages = self.measurement.walk.as_ref().map_or(&[][..], |walk| &walk.pages);
        let held = collector.map_or_else(Vec::new, |collector| collector.held_slots(pages));
        ledger(self.measurement, Duration::ZERO, self.start, held)
    }
}

/// The ledger of what was measured since `start` and, before that, in `before`.
fn ledger(measurement: Measurement, before: Duration, start: Instant, held_slots: Vec<HeldSlots>) -> Ledger {
    let Measurement { account, process, usage, empty_pages, copied, allocator, walk } = measurement;
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let ledger = Ledger::new(std::process::id(), time, account);
    Ledger {
        full: walk.is_some(),
        peak_rss_bytes: process.peak,
        swap_bytes: usage.map(|usage| usage.swap).or(process.swap),
        shared_bytes: usage.map(|usage| usage.shared),
        private_bytes: usage.map(|usage| usage.private),
        allocator,
        limit: Limit::read(Path::new("/")),
        held_slots,
        empty_page_bytes: empty_pages,
        copied_bytes: copied,
        elapsed_nanoseconds: u64::try_from((before + start.elapsed()).as_nanos()).unwrap_or(u64::MAX),
        ..ledger
    }
}

/// The bytes of the tables of all collectors that have hooks, and of `collector`.
fn own_bytes(collector: Option<&Collector>) -> u64 {
    let mut bytes = collector.map_or(0, Collector::bytes);
    hooked::each(|other| {
        if collector.is_none_or(|collector| !std::ptr::eq(collector, other)) {
            bytes += other.bytes();
        }
    });
    bytes as u64
}

impl Collector {
    /// What the objects own outside their slots that were allocated since the start. None if that is not known: the
    /// dead are still among the samples, or there are none.
    fn object_memory(&self, ruby: &Ruby) -> Result<Option<Figure>, Error> {
        if !self.was_started() || self.failure().is_some() {
            return Ok(None);
        }
        self.check_collections(ruby)?;
        if !self.uses_mark_bits() && gc::Info::get(ruby)?.is_sweeping() {
            return Ok(None);
        }
        Ok(self.state.with(|state| {
            let live = state.reservoir.live().samples();
            let measure = |sample: &LiveSample| {
                let object = sample.address as VALUE;
                // SAFETY: the GVL is held, and the object alive: no collection was missed, and either the samples of
                // the dead were dropped when they were marked, or all dead are swept.
                let bytes = unsafe {
                    let size = memsize::of_plain_at_once(object).unwrap_or_else(|| memsize::from_slot(object));
                    // What is in the transient heap has a line of its own.
                    let is_elsewhere = memory::is_transient(type_of(object), flags(object));
                    if is_elsewhere { 0 } else { size.saturating_sub(memsize::slot_size(object)) as u64 }
                };
                (state.reservoir.weight(sample), bytes, state.reservoir.window(sample))
            };
            let note = "of objects that were allocated since the profiler was started, without those of extensions; \
                        the rest is part of vm_memory";
            (!live.is_empty()).then(|| ledger::estimate(live, MOST_SAMPLES, SEED, measure).noting(note))
        }))
    }

    /// Which sites keep pages that have free slots, as far as stacks are known by name.
    fn held_slots(&self, pages: &[HeapPage]) -> Vec<HeldSlots> {
        if !self.was_started() || self.failure().is_some() {
            return Vec::new();
        }
        let sites = self.state.with(|state| {
            let mut sites: Map<StackId, Site> = Map::default();
            for sample in state.reservoir.live().samples() {
                let site = sites.entry(sample.stack).or_insert_with(|| {
                    let name = site(&state.sites.stacks, sample.stack).map(|site| site.name).unwrap_or_default();
                    Site { name, objects: Vec::new() }
                });
                site.objects.push((sample.address, state.reservoir.weight(sample)));
            }
            sites.into_values().filter(|site| !site.name.is_empty()).collect::<Vec<_>>()
        });
        ledger::held_slots(&sites, pages)
    }
}
