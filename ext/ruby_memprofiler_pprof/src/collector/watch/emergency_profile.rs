//! The encoding of a live set that is borrowed: nothing is copied, named or sorted, so it takes no memory but a buffer's.

use super::alarm::Alarm;
use super::file::now;
use super::numbering::{Numbering, STRINGS_OF_LABELS, fixed, text};
use crate::collector::missed_collections::MissedCollections;
use crate::collector::stacks::FrameKind;
use crate::collector::state::State;
use crate::collector::{stats, totals};
use crate::vm::{bare_names, memsize};
use memprofiler_core::pprof::{Footer, Stream};
use memprofiler_core::profile::Rounding;
use memprofiler_core::reservoir::{ClassId, LiveSample};
use memprofiler_core::stratum::Stratum;
use memprofiler_core::window_group::{WindowGroup, pack};
use rb_sys::VALUE;
use std::fs::File;
use std::io::{self, Write};

/// What is said about such a profile.
const CAVEAT: &str = "emergency=written without the GVL, since Ruby came to no safe point in time or the limit was \
                      near: only String and Array have their contents counted, what was not named yet lacks its class, \
                      C functions their names, and allocations are left out";

/// What is said besides if no object could be read.
const MOVING: &str = "emergency_gc=a garbage collection was freeing or moving objects: no contents are counted, and what \
                      was not named yet has no name";

/// What is said besides if objects may be gone.
const MISSED: &str = "emergency_gc=garbage collections may have been missed: no contents are counted";

/// A profile of a state that is borrowed.
pub(super) struct EmergencyProfile<'a> {
    state: &'a State,
    numbers: Numbering<'a>,
    /// Whether all samples had their objects, at their addresses, to begin with.
    present: bool,
    /// Collections that have gone unnoticed meanwhile.
    missed: &'a MissedCollections,
    comments: Vec<String>,
}

impl<'a> EmergencyProfile<'a> {
    /// Of what `state` has now: whether objects are `readable`, and whether all that died since they were sampled is
    /// `known`.
    pub fn new(state: &'a State, missed: &'a MissedCollections, alarm: &Alarm, readable: bool, known: bool) -> Self {
        let mut comments = vec![
            format!("ruby_memprofiler_pprof {}", env!("CARGO_PKG_VERSION")),
            format!("sample_rate={}", state.reservoir.effective_rate()),
            format!("greatest_weight={}", state.reservoir.greatest_weight()),
            format!("max_heap_samples={}", state.options.max_heap_samples),
            format!("dump_above={alarm}"),
            CAVEAT.to_owned(),
        ];
        comments.extend(stats::tag_comments(&state.options.tags).chain(totals::origin(state.baseline)));
        comments.extend((!readable).then_some(MOVING).or((!known).then_some(MISSED)).map(str::to_owned));
        let numbers = Numbering::new(state, readable, text::END as usize + comments.len());
        Self { state, numbers, present: readable && known, missed, comments }
    }

    /// Writes it while it is encoded.
    ///
    /// # Safety
    /// What the state refers to must be kept alive.
    pub unsafe fn write(&self, file: File) -> io::Result<()> {
        let mut out = Stream::new(file);
        text::COLUMNS.into_iter().try_for_each(|column| out.sample_type(column))?;
        // SAFETY: as required above.
        unsafe {
            self.samples(&mut out)?;
            out.mapping(text::RUBY)?;
            self.locations(&mut out)?;
            self.functions(&mut out)?;
            self.strings(&mut out)?;
        }
        (0..self.comments.len() as i64).try_for_each(|number| out.comment(text::END + number))?;
        let footer = Footer {
            time_nanos: i64::try_from(now().as_nanos()).unwrap_or(i64::MAX),
            period_type: text::PERIOD,
            period: self.state.reservoir.period(),
            default_sample_type: text::COLUMNS[3][0],
        };
        out.finish(footer)?.flush()
    }

    /// Runs of samples of one stack, class and order of magnitude become one, apart from those that were taken in
    /// windows.
    ///
    /// # Safety
    /// As for [`write`](Self::write).
    unsafe fn samples(&self, out: &mut Stream<File>) -> io::Result<()> {
        let reservoir = &self.state.reservoir;
        let mut rounding = Rounding::default();
        let key = |sample: &LiveSample| {
            let window = reservoir.window(sample);
            // SAFETY: as required above.
            let size = unsafe { self.size(sample) };
            let magnitude = Stratum::of(window, reservoir.weight(sample), size).magnitude();
            (sample.stack, sample.class, window.is_some(), magnitude)
        };
        for run in reservoir.live().samples().chunk_by(|a, b| key(a) == key(b)) {
            let (mut objects, mut bytes, mut windows) = (0.0, 0.0, [0.0; WindowGroup::COUNT]);
            for sample in run {
                let weight = reservoir.weight(sample);
                objects += weight;
                if let Some(group) = reservoir.window(sample) {
                    windows[group.number()] += weight;
                }
                // SAFETY: as required above.
                bytes += weight * unsafe { self.size(sample) } as f64;
            }
            let Some(LiveSample { stack, class, .. }) = run.first() else { continue };
            let locations = self.numbers.frames(*stack).filter_map(|(stack, node)| self.numbers.location(stack, node));
            let class = self.state.sites.classes.name(*class).map(|_| [text::CLASS, self.class(*class)]);
            let labels = self.numbers.frames(*stack).flat_map(|(_, node)| self.labels(self.label_set(node)));
            let [objects, bytes] = rounding.next([objects, bytes]);
            let windows = Some((text::WINDOWS, pack(&windows))).filter(|&(_, packed)| packed != 0);
            out.sample(locations, [0, 0, objects, bytes], class.into_iter().chain(labels), windows)?;
        }
        Ok(())
    }

    fn class(&self, class: ClassId) -> i64 {
        self.numbers.classes + i64::from(class.0)
    }

    fn label_set(&self, node: memprofiler_core::stack_tree::Node) -> Option<u32> {
        match self.state.sites.stacks.frame_kind(node) {
            FrameKind::Labels(id) => Some(id),
            _ => None,
        }
    }

    fn labels(&self, set: Option<u32>) -> impl Iterator<Item = [i64; 2]> {
        let pairs = set.and_then(|id| self.state.sites.stacks.labels(id)).map_or(0, |set| set.pairs().len());
        let first = self.numbers.labels + STRINGS_OF_LABELS * i64::from(set.unwrap_or(0));
        (0..pairs as i64).map(move |number| [0, 1].map(|part| first + 2 * number + part))
    }

    /// # Safety
    /// As for [`write`](Self::write).
    unsafe fn locations(&self, out: &mut Stream<File>) -> io::Result<()> {
        for (stack, node) in self.state.sites.stacks.tree().stacks() {
            let Some(id) = self.numbers.location(stack, node) else { continue };
            // SAFETY: as required above.
            let place = unsafe { self.numbers.place(stack, node) };
            out.location(id, place.function, place.line)?;
            if let Some(names) = place.own {
                out.function(place.function, names, 0)?;
            }
        }
        Ok(())
    }

    /// # Safety
    /// As for [`write`](Self::write).
    unsafe fn functions(&self, out: &mut Stream<File>) -> io::Result<()> {
        let stacks = &self.state.sites.stacks;
        let mut number = 0;
        for id in 0..self.numbers.named_count as u32 {
            number += 1;
            let start_line = stacks.function_name(id).map_or(0, |name| name.start_line);
            out.function(number, self.numbers.name(id), start_line)?;
        }
        for id in 0..self.numbers.coded_count {
            number += 1;
            // SAFETY: the state keeps the instruction sequence alive, and it can be read.
            let start_line = self.iseq(id).map_or(0, |iseq| unsafe { bare_names::start_line(iseq) });
            out.function(number, self.numbers.code(id as u32), start_line)?;
        }
        Ok(())
    }

    /// # Safety
    /// As for [`write`](Self::write).
    unsafe fn strings(&self, out: &mut Stream<File>) -> io::Result<()> {
        let (stacks, classes) = (&self.state.sites.stacks, &self.state.sites.classes);
        let names = fixed(self.state.options.sample_type_names);
        names.iter().chain(&self.comments).try_for_each(|text| out.string(text))?;
        for id in 0..self.numbers.named_count as u32 {
            let (name, file) = stacks.function_name(id).map_or(("", ""), |name| (&name.name, &name.file));
            out.string(name)?;
            out.string(file)?;
        }
        for id in 0..self.numbers.coded_count {
            // SAFETY: as above; no collection moves its names.
            let place = self.iseq(id).map(|iseq| unsafe { (bare_names::label(iseq), bare_names::file(iseq)) });
            let (label, file) = place.unwrap_or(("(not yet named)".into(), "".into()));
            out.string(&label)?;
            out.string(&file)?;
        }
        for id in 0..self.numbers.class_count as u32 {
            out.string(classes.name(ClassId(id)).map_or("", |name| name))?;
        }
        for id in 0..self.numbers.label_sets as u32 {
            let pairs = stacks.labels(id).map_or(&[][..], |set| set.pairs());
            let texts = pairs.iter().flat_map(|(key, value)| [&**key, &**value]);
            texts
                .chain(std::iter::repeat(""))
                .take(STRINGS_OF_LABELS as usize)
                .try_for_each(|text| out.string(text))?;
        }
        Ok(())
    }

    /// The instruction sequence of the function with this number, if it has one that can be read.
    fn iseq(&self, number: usize) -> Option<VALUE> {
        if !self.numbers.readable {
            return None;
        }
        match FrameKind::of(self.state.sites.stacks.tree().function_at(number)?) {
            FrameKind::Walked { iseq, .. } if iseq != 0 => Some(iseq),
            _ => None,
        }
    }

    /// The size of a sampled object in bytes, as far as it can be told.
    ///
    /// # Safety
    /// As for [`write`](Self::write).
    unsafe fn size(&self, sample: &LiveSample) -> usize {
        // A collection that a hook sees waits for the state before it ends its mark phase. Another one frees no page
        // before it has swept, which is long after it counts as missed.
        if !self.present || self.missed.are_any() {
            return memsize::SMALLEST_SLOT;
        }
        // SAFETY: what is in the live set is alive, or was not swept yet, and no collection moves it: its slot is
        // there.
        unsafe { memsize::from_slot(sample.address as VALUE) }
    }
}
