//! Who holds the sampled objects: what a copy of the process finds in its heap, or this process itself.

mod samples;
mod site;

pub use site::{Place, site};

use super::mute::Mute;
use super::{Collector, FlushFailure, FlushOptions, stats};
use crate::vm::child::{self, Limits};
use crate::vm::clock::nanoseconds_since_1970;
use crate::vm::heap::{Describer, Prepared, Sizes, walk};
use crate::vm::{gc, gvl, ractor, resident};
use magnus::{Error, Ruby};
use memprofiler_core::graph::{self, Answer, Builder, PathTree};
use memprofiler_core::interrupt::Interrupt;
use memprofiler_core::pprof;
use samples::Sampled;
use serde::Serialize;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// What the graph takes for an object, at most, and for all that does not depend on their number, in bytes.
const BYTES_PER_OBJECT: u64 = 160;
const BYTES_IN_ANY_CASE: u64 = 32 << 20;

/// How many of the objects that keep the most memory alive are told, unless the question is about certain objects.
const LARGEST: usize = 5;

/// As for profiles of the heap.
const GZIP_LEVEL: u32 = 2;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// Only what was allocated there.
    pub place: Option<Place>,
    /// Only objects of the class with this name.
    pub class: Option<String>,
    /// How many sites are reported at most.
    pub limit: usize,
    /// Whether to read the heap in this process, with the GVL held, rather than in a copy.
    pub in_process: bool,
    /// How long it may take; without meaning in the process itself.
    pub timeout: Duration,
}

/// The answer.
#[derive(Debug)]
pub struct Retainers {
    /// As docs/who-holds-it.md describes it.
    pub json: Vec<u8>,
    /// The paths to all sampled objects.
    pub pprof: Vec<u8>,
}

/// Why there is none.
#[derive(Debug)]
pub enum RetainersFailure {
    /// As for a flush.
    Flush(FlushFailure),
    /// No copy was made, or it did not answer: why, and what would help.
    Refused(String),
}

impl From<FlushFailure> for RetainersFailure {
    fn from(failure: FlushFailure) -> Self {
        Self::Flush(failure)
    }
}

impl From<Error> for RetainersFailure {
    fn from(error: Error) -> Self {
        Self::Flush(error.into())
    }
}

impl From<child::Failure> for RetainersFailure {
    fn from(failure: child::Failure) -> Self {
        match failure {
            child::Failure::Raised(error) => error.into(),
            child::Failure::Refused(reason) | child::Failure::Lost(reason) => Self::Refused(reason),
        }
    }
}

impl From<io::Error> for RetainersFailure {
    fn from(error: io::Error) -> Self {
        Self::Flush(FlushFailure::Encoding(error))
    }
}

/// How an answer was found; the fields are those of its JSON.
#[derive(Debug, Default, Serialize)]
struct Circumstances {
    pid: u32,
    time_nanoseconds: i64,
    unnamed_samples: u64,
    in_process: bool,
    pause_nanoseconds: Option<u64>,
    held_nanoseconds: Option<u64>,
    elapsed_nanoseconds: u64,
    attempts: Option<u32>,
    /// The most that the copy took beyond what it shared.
    memory_bytes: Option<u64>,
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    #[serde(flatten)]
    circumstances: Circumstances,
}

impl Collector {
    /// Names the stacks and classes of all live samples, so that a copy of the process knows them. The caller must
    /// ensure that no flush of this collector is running. `mute` is this thread's.
    pub fn name_samples(&self, ruby: &Ruby, mute: &Mute) -> Result<(), FlushFailure> {
        // What it reports will be reported again.
        self.flush(ruby, FlushOptions { reader: None, ..FlushOptions::default() }, mute).map(drop)
    }

    /// Finds out who holds the samples that are [named](Self::name_samples).
    pub fn retainers(&self, ruby: &Ruby, question: &Question) -> Result<Retainers, RetainersFailure> {
        let start = Instant::now();
        let time_nanoseconds = nanoseconds_since_1970(SystemTime::now());
        let comments = self.retainers_comments(ruby)?;
        let prepared = Prepared::new(ruby)?;
        let (found, mut circumstances) = if question.in_process {
            child::check_own_memory(self.memory_needed(ruby)?)?;
            // After this call no other thread runs that could make one.
            if ractor::count(ruby)? != 1 {
                return Err(RetainersFailure::Refused(ractor::BESIDE_OTHERS.to_owned()));
            }
            // The check comes last, as what it misses may be the sweep; if it adds a hook, that may collect once more.
            loop {
                prepared.settle(ruby);
                self.check_collections(ruby)?;
                if !prepared.is_sweeping() {
                    break;
                }
            }
            self.check()?;
            let start = Instant::now();
            let mut found = Vec::new();
            self.search(&prepared, question, Sizes::Own, &mut found)?;
            (found, Circumstances { held_nanoseconds: Some(nanoseconds(start.elapsed())), ..Circumstances::default() })
        } else {
            let compacts = gc::compacts_by_itself(ruby)?;
            let settle = |attempt: u32| {
                // In the middle of a compaction pages may be protected, which only a handler of the VM's lifts. And what
                // the first copy died of may be a dead object.
                if compacts || attempt > 1 {
                    prepared.settle(ruby);
                }
                // If no hook can be added the samples are dropped all the same, and the next flush reports it.
                let _ = self.check_collections(ruby);
            };
            // Each reference takes a word of the program's memory, and two in the copy. Most programs have few for each
            // object.
            let spare = resident::now().unwrap_or(0).saturating_mul(2);
            let limits = Limits { wall: question.timeout, memory: self.memory_needed(ruby)?, spare };
            let outcome = child::run(ruby, limits, settle, |out| self.search(&prepared, question, Sizes::All, out))?;
            let circumstances = Circumstances {
                pause_nanoseconds: Some(nanoseconds(outcome.pause)),
                attempts: Some(outcome.attempts),
                memory_bytes: Some(outcome.memory),
                ..Circumstances::default()
            };
            (outcome.bytes, circumstances)
        };
        circumstances.pid = std::process::id();
        circumstances.time_nanoseconds = time_nanoseconds;
        circumstances.in_process = question.in_process;
        gvl::without_gvl(move || report(&found, circumstances, &comments, start)).map_err(Into::into)
    }

    fn retainers_comments(&self, ruby: &Ruby) -> Result<Vec<Arc<str>>, Error> {
        let own = ["kind=retainers".to_owned(), format!("pid={}", std::process::id()), stats::ruby_description(ruby)?];
        let sampling = self.sampling();
        let remarks = self.state.with(|state| stats::remarks(state, sampling, state.reservoir.greatest_weight()));
        Ok(own.into_iter().chain(remarks).map(Arc::from).collect())
    }

    /// The most that reading the heap takes, in bytes.
    fn memory_needed(&self, ruby: &Ruby) -> Result<u64, Error> {
        let samples = self.state.with(|state| state.reservoir.live().len()) as u64;
        Ok(BYTES_IN_ANY_CASE + BYTES_PER_OBJECT * gc::live_slots(ruby)? + 4 * BYTES_PER_OBJECT * samples)
    }

    /// Reads the heap, and writes what it found. In a copy of the process it may allow all `sizes`. Collections that
    /// were missed must be [noticed](Self::check_collections), since the flush that named the samples let others run.
    fn search(&self, prepared: &Prepared, question: &Question, sizes: Sizes, out: &mut dyn Write) -> io::Result<()> {
        let mut sampled = self.state.with(|state| Sampled::of(state, question));
        // SAFETY: the GVL is held, in a copy by the only thread, and nothing here runs Ruby code or allocates on Ruby's
        // heap. There are no other Ractors: `child::run` and `retainers`, which call this, have refused beside them.
        let graph = unsafe { walk(Builder::new(), prepared, sizes) };
        sampled.measure(&graph);
        // SAFETY: as above; nothing has changed since the walk.
        let mut describer = unsafe { Describer::new(&graph, prepared) };
        let largest = if question.place.is_none() && question.class.is_none() { LARGEST } else { 0 };
        let directory = prepared.directory().to_owned();
        let question = graph::Question { limit: question.limit, largest, directory };
        let answer = graph::answer(&graph, &sampled.samples, &sampled.sites, &question, &mut describer);
        serde_json::to_writer(out, &(answer, sampled.unnamed)).map_err(io::Error::from)
    }
}

/// Completes what was found, without the GVL.
fn report(found: &[u8], circumstances: Circumstances, comments: &[Arc<str>], start: Instant) -> io::Result<Retainers> {
    let (mut answer, unnamed): (Answer, u64) = serde_json::from_slice(found)?;
    let profile = graph::profile(&answer, circumstances.time_nanoseconds, comments, &Interrupt::default())
        .map_err(io::Error::other)?;
    let pprof = pprof::write_whole(&profile, GZIP_LEVEL)?;
    // They are what the profile has.
    answer.paths = PathTree::default();
    let elapsed_nanoseconds = nanoseconds(start.elapsed());
    let circumstances = Circumstances { unnamed_samples: unnamed, elapsed_nanoseconds, ..circumstances };
    let json = serde_json::to_vec(&Report { answer: &answer, circumstances })?;
    Ok(Retainers { json, pprof })
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
