//! Naming without a flush, in small steps.

use super::{STRIDE, State};
use crate::collector::sites::Unnamed;
use memprofiler_core::sums::TallyKey;

/// How far it has come.
#[derive(Debug, Default, Clone, Copy)]
pub enum Naming {
    #[default]
    Idle,
    /// The tally is named, below this position.
    Tally(usize),
    /// The live samples are named, below this position.
    Live(usize),
    /// The peak is named, below this position.
    Peak(usize),
    /// The references are released.
    Release,
    /// Names that are no longer needed are dropped, from this number on.
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
    /// Whether it has started.
    pub fn is_under_way(&self) -> bool {
        !matches!(self, Self::Idle)
    }
}

impl State {
    /// Starts naming if it is time. Returns whether there is something to name.
    pub fn begin_naming(&mut self) -> bool {
        if self.flushing.is_some() {
            return false;
        }
        if self.sites.begin_naming(self.naming.is_under_way()) {
            self.naming = Naming::Tally(self.tally.len());
        }
        self.naming.is_under_way()
    }

    /// Takes one step.
    pub fn name_some(&mut self) -> Progress {
        let outcome = match self.naming {
            Naming::Idle => return Progress::Done,
            Naming::Tally(mut position) => {
                let outcome = self.name_tally(&mut position);
                self.naming =
                    if position == 0 { Naming::Live(self.reservoir.live().len()) } else { Naming::Tally(position) };
                outcome
            }
            Naming::Live(mut position) => {
                let outcome = self.name_live(&mut position);
                self.naming = Naming::Live(position);
                if position == 0 {
                    self.naming = Naming::Peak(usize::MAX);
                }
                outcome
            }
            Naming::Peak(mut position) => {
                let outcome = self.name_peak(&mut position);
                self.naming = Naming::Peak(position);
                if position == 0 {
                    self.sites.stacks.forget_contexts();
                    self.naming = Naming::Release;
                }
                outcome
            }
            Naming::Release => {
                if self.sites.release_sources(STRIDE) {
                    self.sites.end_naming();
                    self.naming = Naming::Prune(0);
                }
                Ok(())
            }
            Naming::Prune(first) => {
                if self.sites.release_leftovers(STRIDE) {
                    match self.sites.prune_names(first, STRIDE) {
                        Some(next) => self.naming = Naming::Prune(next),
                        None => self.end_naming(),
                    }
                }
                Ok(())
            }
        };
        outcome.map_or_else(Progress::Unnamed, |()| Progress::More)
    }

    fn end_naming(&mut self) {
        self.naming = Naming::Idle;
        self.counters.namings += 1;
        self.sites.stacks.reset_limit();
    }

    /// Gives up for now, for lack of memory.
    pub fn abandon_naming(&mut self) {
        self.naming = Naming::Idle;
        self.sites.release_held();
    }

    /// Takes some entries out of the tally and adds them again, by name. Downwards, as a flush does.
    fn name_tally(&mut self, position: &mut usize) -> Result<(), Unnamed> {
        for _ in 0..STRIDE {
            *position = (*position).min(self.tally.len());
            let Some(last) = position.checked_sub(1) else { return Ok(()) };
            if let Some(&TallyKey { stack, class, readers, stratum }) = self.tally.key(last) {
                if self.sites.are_unnamed(stack, class) {
                    let named = self.sites.named(stack, class)?;
                    if let Some((_, allocated)) = self.tally.take(last) {
                        self.count_allocated_by_name(named, readers, stratum, allocated);
                        self.sites.release_source(stack, class);
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
            if self.sites.are_unnamed(sample.stack, sample.class) {
                let (stack, class) = self.sites.named(sample.stack, sample.class)?;
                self.sites.retain(stack, class);
                if let Some(named) = self.reservoir.sample_mut(last) {
                    (named.stack, named.class) = (stack, class);
                }
                self.sites.release_source(sample.stack, sample.class);
            }
            *position = last;
        }
        Ok(())
    }
}
