//! Moves what was allocated and has died from the tally to the profile, or back.

use super::extract::Key;
use super::{CLOCK_STRIDE, Flush, FlushFailure};
use crate::collector::resolve::Owner;
use crate::collector::sample_types::Values;
use crate::collector::sites::Unnamed;
use crate::collector::state::State;
use crate::faults;
use memprofiler_core::reservoir::ClassId;
use memprofiler_core::stack_tree::StackId;
use memprofiler_core::sums::{Allocated, TallyKey};

impl Flush<'_> {
    /// Takes over what was allocated and has died since the last flush. Works from the end of the tally downwards: the
    /// last entry takes the place of a removed one, and was either visited already or added later.
    pub(super) fn allocations(&mut self) -> Result<(), FlushFailure> {
        faults::point("flush: allocations");
        let collector = self.collector;
        let mut position = collector.state.with(|state| state.tally.len());
        loop {
            match collector.state.with(|state| self.take_some(state, &mut position)) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(unnamed) => collector.name(self.pace.mute, unnamed)?,
            }
            self.rest()?;
        }
    }

    /// Takes over some entries below `position`. Returns whether there are more.
    fn take_some(&mut self, state: &mut State, position: &mut usize) -> Result<bool, Unnamed> {
        for _ in 0..CLOCK_STRIDE {
            // Others may have changed the tally while this flush rested.
            *position = (*position).min(state.tally.len());
            let Some(last) = position.checked_sub(1) else { return Ok(false) };
            if let Some(&TallyKey { stack, class, .. }) = state.tally.key(last) {
                let named = state.sites.named(stack, class)?;
                if let Some((key, allocated)) = state.tally.take(last) {
                    self.take_over(state, key, named, allocated);
                }
            }
            *position = last;
        }
        Ok(true)
    }

    fn take_over(&mut self, state: &mut State, key: TallyKey, named: (StackId, ClassId), allocated: Allocated) {
        let TallyKey { stack, class, readers, stratum } = key;
        if readers.contain(self.reader) {
            let Allocated { objects: allocations, bytes: allocated_bytes } = allocated;
            let key = Key { stack: named.0, class: named.1, age: None, stratum };
            self.sums.add(key, Values { allocations, allocated_bytes, ..Values::default() });
        }
        let others = readers.without(self.reader);
        if !others.is_empty() {
            // By name, so that a reader that seldom flushes keeps no code alive.
            state.count_allocated_by_name(named, others, stratum, allocated);
        }
        state.sites.release_source(stack, class);
    }

    /// Returns up to `some` allocations to the tally, to be reported again. Returns whether there are more.
    pub(super) fn give_back(&mut self, some: usize) -> bool {
        let end = self.sums.len().min(self.given_back.saturating_add(some));
        self.collector.state.with(|state| {
            let entries = (self.given_back..end).filter_map(|position| self.sums.entry(position));
            for (key, values) in entries.filter(|(_, values)| values.allocations > 0.0) {
                let allocated = Allocated { objects: values.allocations, bytes: values.allocated_bytes };
                state.count_allocated_by_name((key.stack, key.class), self.reader, key.stratum, allocated);
            }
        });
        self.given_back = end;
        end < self.sums.len()
    }
}
