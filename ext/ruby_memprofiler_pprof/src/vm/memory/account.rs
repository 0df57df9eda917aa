//! What the figures that were measured mean.

use super::allocator::{Allocator, Statistics};
use super::heap_figures::HeapFigures;
use super::heap_walk::HeapWalk;
use super::{COMMON, Measurement, PARENT, Said};
use memprofiler_core::ledger::{Account, Figure, Process, Survey};
use std::os::unix::process::parent_id;
use std::sync::atomic::Ordering;

const UNSEEN: &str = "the process's pages cannot be looked at";

/// What was measured.
#[derive(Debug)]
pub struct Facts {
    pub allocator: Allocator,
    pub said: Said,
    pub survey: Option<Survey>,
    pub figures: HeapFigures,
    pub walk: Option<HeapWalk>,
    /// The size of the profiler's tables, in memory or not.
    pub profiler: u64,
    /// The part of it that has pages of its own.
    pub profiler_pages: u64,
    pub process: Process,
    pub has_transient_heap: bool,
    /// Of large mappings, only every nth sample of pages was looked at.
    pub nth: usize,
}

impl Facts {
    /// What they mean.
    pub fn measurement(self) -> Measurement {
        Measurement {
            account: self.account(),
            process: self.process,
            usage: self.survey.and_then(|survey| survey.usage),
            empty_pages: self.empty_pages(),
            copied: self.copied(),
            allocator: self.allocator.name(),
            walk: self.walk,
        }
    }

    /// The bytes of the heap's pages without objects, if it was walked.
    fn empty_pages(&self) -> Option<u64> {
        let (walk, pages) = (self.walk.as_ref()?, self.figures.pages?);
        Some(pages.saturating_sub(walk.used_pages()))
    }

    /// What was unshared since the process was forked, if it was. Once its parent has ended, everything is unshared.
    fn copied(&self) -> Option<u64> {
        let parent = PARENT.load(Ordering::Relaxed);
        let forked = parent != 0 && parent == parent_id();
        let survey = self.survey.filter(|survey| survey.usage.is_some() && forked)?;
        // Pages of files that were written to were common as well, but are not among the survey's shared ones.
        let common = COMMON.load(Ordering::Relaxed).saturating_sub(survey.files_private);
        // Some of it may have been given back instead.
        let unshared = common.saturating_sub(survey.shared_anonymous);
        Some(unshared.min(survey.private_anonymous))
    }

    /// The lines' figures.
    fn account(&self) -> Account {
        let Some(survey) = self.survey else {
            return Account {
                resident: self.process.resident,
                heap_pages: self.heap_pages(0),
                object_slots: self.object_slots(),
                profiler: self.profiler(None),
                code: self.code(),
                object_memory: self.object_memory(),
                ..Account::default()
            };
        };
        let (allocated, allocator_free) = self.allocated(&survey);
        let or_unknown = |bytes: u64| {
            let seen = survey.usage.is_some() || survey.complete;
            if seen { Figure::exact(bytes) } else { Figure::unknown(UNSEEN) }
        };
        Account {
            resident: survey.usage.map(|usage| usage.resident).or(self.process.resident),
            files_shared: match (survey.usage, self.process.files) {
                (None, Some(files)) => Figure::exact(files),
                _ => or_unknown(survey.files_shared),
            },
            files_private: or_unknown(survey.files_private),
            thread_stacks: or_unknown(survey.thread_stacks),
            jit_code: or_unknown(survey.jit_code),
            transient_heap: match (survey.complete, self.has_transient_heap) {
                _ if cfg!(ruby_gte_3_3) => Figure::exact(0).noting("this Ruby has none"),
                (true, true) => self.sampled(survey.transient_heap),
                (true, false) => Figure::unknown("it was not found"),
                (false, _) => Figure::unknown(UNSEEN),
            },
            heap_pages: self.heap_pages(survey.heap_pages),
            object_slots: self.object_slots(),
            allocated,
            allocator_free,
            profiler: self.profiler(Some(&survey).filter(|survey| survey.complete)),
            code: self.code(),
            object_memory: self.object_memory(),
        }
    }

    /// The profiler's tables; `survey` is one that has seen all pages.
    fn profiler(&self, survey: Option<&Survey>) -> Figure {
        match survey {
            Some(survey) => Figure::exact(self.profiler.saturating_sub(self.profiler_pages) + survey.of_profiler),
            None => Figure::estimated(self.profiler, &format!("its tables, in memory or not: {UNSEEN}")),
        }
    }

    /// The pages of the heap, of which `seen` bytes were found in memory.
    fn heap_pages(&self, seen: u64) -> Figure {
        match (&self.walk, self.figures.pages) {
            (Some(walk), Some(pages)) if seen > 0 => {
                // Pages without objects are in no list.
                let listed: u64 = walk.pages.iter().map(|page| page.end - page.start).sum();
                Figure::exact(seen + pages.saturating_sub(listed))
            }
            (_, Some(pages)) => Figure::exact(pages),
            (_, None) => Figure::unknown("this garbage collector does not say how many pages it has"),
        }
    }

    fn object_slots(&self) -> Figure {
        if let Some(walk) = &self.walk {
            return Figure::exact(walk.live_bytes());
        }
        let note = "with dead objects that were not swept yet";
        match (self.figures.objects, self.figures.exact) {
            (Some(bytes), true) => Figure::exact(bytes).noting(note),
            (Some(bytes), false) => Figure::estimated(bytes, note),
            (None, _) => Figure::unknown("this garbage collector does not say how many objects there are"),
        }
    }

    fn code(&self) -> Figure {
        let unknown = || Figure::unknown("only a walk over the heap can tell; part of vm_memory");
        self.walk.as_ref().map_or_else(unknown, |walk| Figure::exact(walk.code))
    }

    fn object_memory(&self) -> Figure {
        let unknown = || Figure::unknown("only samples or a walk over the heap can tell; part of vm_memory");
        self.walk.as_ref().map_or_else(unknown, |walk| Figure::exact(walk.object_memory))
    }

    /// What the allocator and the VM have of anonymous memory, and the part that the allocator has in no use.
    fn allocated(&self, survey: &Survey) -> (Figure, Figure) {
        let no_statistics = match self.said {
            Said::NotAsked => "this allocator takes long to say it; a full ledger asks; part of vm_memory",
            _ => "this allocator keeps no statistics; part of vm_memory",
        };
        if !survey.complete {
            let note = "not all of the process's pages could be looked at; part of vm_memory";
            return (Figure::default(), Figure::unknown(note));
        }
        // A quick survey does not know the pages of the heap.
        let unlisted = if self.walk.is_some() { 0 } else { self.figures.pages.unwrap_or(0) };
        let other = survey.other.saturating_sub(unlisted);
        let apart = survey.of_vm + survey.of_profiler;
        match (self.allocator, self.said) {
            (Allocator::Glibc(_), Said::Statistics(Statistics { used, resident })) => {
                let mapped = if self.walk.is_some() { survey.mapped_blocks } else { resident.min(other) };
                let touched = used.saturating_sub(survey.untouched_in_arenas);
                let free = survey.arenas.saturating_sub(touched);
                (Figure::exact(survey.arenas + mapped + apart), self.sampled(free))
            }
            (Allocator::Glibc(_), _) if self.walk.is_some() => {
                let bytes = survey.arenas + survey.mapped_blocks + apart;
                (Figure::exact(bytes), Figure::unknown(no_statistics))
            }
            (_, Said::Statistics(Statistics { used, resident })) => {
                let bytes = resident.min(survey.arenas + other);
                let touched = used.saturating_sub(survey.untouched_in_arenas + survey.untouched_elsewhere);
                let note = "this allocator counts blocks by its sizes, up to a fifth larger, touched or not";
                (Figure::exact(bytes + apart), Figure::estimated(bytes.saturating_sub(touched), note))
            }
            (..) => (Figure::default(), Figure::unknown(no_statistics)),
        }
    }

    /// What depends on pages that may not all have been looked at.
    fn sampled(&self, bytes: u64) -> Figure {
        match self.nth {
            1 => Figure::exact(bytes),
            nth => Figure::estimated(bytes, &format!("from one in {nth} pages")),
        }
    }
}
