//! What was allocated and has died goes from the tally to the profile, or back.

use super::Flush;
use super::extract::Key;
use crate::faults;
use magnus::Error;
use memprofiler_core::live_set::ClassId;
use memprofiler_core::profile::Values;
use memprofiler_core::stack_tree::StackId;
use memprofiler_core::tally::{Allocated, Kind};

impl Flush<'_> {
    /// Takes over what was allocated and has died since the last flush.
    pub(super) fn allocations(&mut self) -> Result<(), Error> {
        faults::point("flush: allocations");
        let mut pending = self.collector.state.with(|state| std::mem::take(&mut state.tally)).into_entries();
        while let Some((kind, allocated)) = pending.next() {
            let (stack, class, _) = kind;
            let outcome = match self.name(stack, class) {
                Ok(named) => {
                    self.take_over(kind, named, allocated);
                    self.rest()
                }
                Err(error) => {
                    self.put_back(std::iter::once((kind, allocated)));
                    Err(error)
                }
            };
            if let Err(error) = outcome {
                self.put_back(pending);
                return Err(error);
            }
        }
        Ok(())
    }

    fn take_over(&mut self, kind: Kind, (named_stack, named_class): (StackId, ClassId), allocated: Allocated) {
        let (stack, class, readers) = kind;
        if readers.contain(self.reader) {
            let Allocated { objects: allocations, bytes: allocated_bytes } = allocated;
            let key = Key { stack: named_stack, class: named_class, age: None };
            self.sums.add(key, Values { allocations, allocated_bytes, ..Values::default() });
        }
        self.collector.state.with(|state| {
            let others = readers.without(self.reader);
            if !others.is_empty() {
                // By name, so that a reader who comes seldom keeps no code alive.
                state.capture.stacks.retain(named_stack);
                state.classes.retain(named_class.0);
                state.count_allocated((named_stack, named_class, others), allocated);
            }
            state.release(stack, class);
        });
    }

    /// Returns to the tally what was taken from it.
    fn put_back(&self, pending: impl Iterator<Item = (Kind, Allocated)>) {
        self.collector.state.with(|state| pending.for_each(|(kind, sum)| state.count_allocated(kind, sum)));
    }

    /// Returns some of the allocations to the tally, for the reader to be told again. Returns whether there are more.
    pub(super) fn give_back(&mut self, some: usize) -> bool {
        let end = self.sums.len().min(self.given_back.saturating_add(some));
        self.collector.state.with(|state| {
            let entries = (self.given_back..end).filter_map(|position| self.sums.entry(position));
            for (key, values) in entries.filter(|(_, values)| values.allocations > 0.0) {
                state.capture.stacks.retain(key.stack);
                state.classes.retain(key.class.0);
                let allocated = Allocated { objects: values.allocations, bytes: values.allocated_bytes };
                state.count_allocated((key.stack, key.class, self.reader), allocated);
            }
        });
        self.given_back = end;
        end < self.sums.len()
    }
}
