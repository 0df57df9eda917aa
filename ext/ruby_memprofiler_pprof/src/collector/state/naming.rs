//! Naming without a flush: what there is to do, and a little of it at a time.

use super::State;
use crate::collector::keys::{Class, Function};
use crate::collector::resolve::Unnamed;
use memprofiler_core::reservoir::ClassId;
use memprofiler_core::stack_tree::{Node, StackId};

/// How many functions and classes may come that keep objects of the VM's alive, before all are named.
const MOST_PINNED: usize = 4096;
/// How many entries, samples or references are gone through at a time.
const STRIDE: usize = 64;

/// What has come that is not known by name.
#[derive(Debug, Default)]
pub struct Pins {
    /// How many functions and classes, since all were named.
    lately: usize,
    /// Whether it is time to do something about it.
    pub due: bool,
}

impl Pins {
    /// Counts one more, which is `kept` alive by a keeper, or which the collector's own object has to mark.
    pub fn add(&mut self, kept: bool) {
        self.lately += 1;
        self.due |= self.lately >= MOST_PINNED || !kept;
    }
}

/// How far it has come.
#[derive(Debug, Default)]
pub struct Naming {
    phase: Phase,
    /// The number of the last deferred stack that was read by then, or never will be.
    deferred: u32,
}

#[derive(Debug, Default, Clone, Copy)]
enum Phase {
    #[default]
    Idle,
    /// The tally is named below this position.
    Tally(usize),
    /// So are the live samples.
    Live(usize),
    /// What was named is let go of.
    Release,
    /// Names that are of no use any more are dropped, from this number on.
    Prune(usize),
}

/// What to do next.
#[derive(Debug)]
pub enum Progress {
    Done,
    More,
    Unnamed(Unnamed),
}

impl Naming {
    /// Whether it has begun.
    pub fn is_under_way(&self) -> bool {
        !matches!(self.phase, Phase::Idle)
    }

    /// Whether a deferred stack may still be read.
    pub fn awaits(&self, deferred: u32) -> bool {
        deferred.wrapping_sub(self.deferred) as i32 > 0
    }
}

impl State {
    /// Begins to name if it is time. Returns whether there is something to name.
    pub fn begin_naming(&mut self) -> bool {
        if self.flushing.is_some() {
            return false;
        }
        if !self.naming.is_under_way() && self.capture.pins.lately >= MOST_PINNED {
            // Some may be gone again.
            self.capture.pins.lately = self.unnamed_functions() + self.class_references().count();
            if self.capture.pins.lately >= MOST_PINNED {
                self.capture.pins.lately = 0;
                self.resolver.keeps_threads = true;
                let deferred = self.capture.deferred.latest().wrapping_sub(1);
                self.naming = Naming { phase: Phase::Tally(self.tally.len()), deferred };
            }
        }
        self.capture.pins.due = self.naming.is_under_way();
        self.naming.is_under_way()
    }

    /// Does a little.
    pub fn name_some(&mut self) -> Progress {
        match self.naming.phase {
            Phase::Idle => return Progress::Done,
            Phase::Tally(mut position) => {
                let outcome = self.name_tally(&mut position);
                self.naming.phase =
                    if position == 0 { Phase::Live(self.reservoir.live().len()) } else { Phase::Tally(position) };
                return outcome.map_or_else(Progress::Unnamed, |()| Progress::More);
            }
            Phase::Live(mut position) => {
                let outcome = self.name_live(&mut position);
                self.naming.phase = Phase::Live(position);
                if position == 0 {
                    self.capture.forget_contexts();
                    self.naming.phase = Phase::Release;
                }
                return outcome.map_or_else(Progress::Unnamed, |()| Progress::More);
            }
            Phase::Release => {
                if self.release_sources(STRIDE) {
                    self.leave_to_next();
                    self.capture.forget_deferred(self.naming.deferred);
                    self.naming.phase = Phase::Prune(0);
                }
            }
            Phase::Prune(first) => {
                if self.release_leftovers(STRIDE) {
                    match self.prune_names(first, STRIDE) {
                        Some(next) => self.naming.phase = Phase::Prune(next),
                        None => self.end_naming(),
                    }
                }
            }
        }
        Progress::More
    }

    fn end_naming(&mut self) {
        self.naming.phase = Phase::Idle;
        self.counters.namings += 1;
        self.stack_limit = self.max_stack_nodes;
    }

    /// Gives up for now, without memory.
    pub fn abandon_naming(&mut self) {
        self.naming.phase = Phase::Idle;
        self.release_held();
        self.stack_limit = self.max_stack_nodes;
    }

    /// Takes some entries of the tally out and adds them again, by name. Downwards, as a flush does.
    fn name_tally(&mut self, position: &mut usize) -> Result<(), Unnamed> {
        for _ in 0..STRIDE {
            *position = (*position).min(self.tally.len());
            let Some(last) = position.checked_sub(1) else { return Ok(()) };
            if let Some(((stack, class, readers), _)) = self.tally.entry(last) {
                if self.pins(stack, class) {
                    let named = (self.named_stack(stack)?, self.named_class(class)?);
                    if let Some((_, allocated)) = self.tally.take(last) {
                        self.count_allocated_by_name(named, readers, allocated);
                        self.release(stack, class);
                    }
                }
            }
            *position = last;
        }
        Ok(())
    }

    fn name_live(&mut self, position: &mut usize) -> Result<(), Unnamed> {
        for _ in 0..STRIDE {
            *position = (*position).min(self.reservoir.live().len());
            let Some(last) = position.checked_sub(1) else { return Ok(()) };
            let sample = self.reservoir.live().samples()[last];
            if self.pins(sample.stack, sample.class) {
                let (stack, class) = (self.named_stack(sample.stack)?, self.named_class(sample.class)?);
                self.capture.stacks.retain(stack);
                self.classes.retain(class.0);
                if let Some(named) = self.reservoir.sample_mut(last) {
                    (named.stack, named.class) = (stack, class);
                }
                self.release(sample.stack, sample.class);
            }
            *position = last;
        }
        Ok(())
    }

    /// Whether they keep code or a class alive, or could be one with others. If the innermost frame has its name, so have
    /// the others.
    fn pins(&self, stack: StackId, class: ClassId) -> bool {
        let by_object = |node: Node| match self.capture.function(node.function) {
            Function::Walked { .. } | Function::Profiled(_) => true,
            Function::Deferred(number) => !self.naming.awaits(number),
            Function::Named(_) | Function::Labels(_) | Function::Thread(_) => false,
        };
        self.capture.stacks.node(stack).is_some_and(by_object)
            || matches!(Class::of(self.classes.key(class.0)), Class::Object(_))
    }
}
