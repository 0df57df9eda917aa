//! The live set when the process had the most memory.

use super::{STRIDE, State};
use crate::collector::sites::Unnamed;
use crate::collector::stacks::Stacks;
use crate::vm::errno::SavedErrno;
use crate::vm::{memsize, resident};
use memprofiler_core::peak::{LiveSums, PeakKey};
use memprofiler_core::reservoir::LiveSample;
use memprofiler_core::stack_tree::StackId;
use memprofiler_core::stratum::Stratum;
use memprofiler_core::sums::Allocated;
use rb_sys::VALUE;
use std::time::SystemTime;

impl State {
    /// Looks at the live set if that is asked for and the process has more memory than ever. Not during a flush, which
    /// relies on it; the next collection will do as well. Without mark bits nobody knows at this point what is alive.
    ///
    /// # Safety
    /// Must be called in a GC_END_MARK hook after [`collected`](Self::collected).
    pub unsafe fn look_for_peak(&mut self) {
        if !self.options.track_peak || self.mark_bits.is_none() || self.flushing.is_some() {
            return;
        }
        let _errno = SavedErrno::new();
        let Some(resident) = resident::now().filter(|&resident| self.peak.is_due(resident)) else { return };
        let mut found = LiveSums::new(resident, SystemTime::now(), self.reservoir.greatest_weight());
        for sample in self.reservoir.live().samples() {
            let object = sample.address as VALUE;
            // SAFETY: the object is marked, or the hook would have removed its sample just now; nothing is swept yet.
            let size = unsafe { memsize::of_plain(object).unwrap_or_else(|| memsize::slot_size(object)) };
            let weight = self.reservoir.weight(sample);
            let allocated = Allocated { objects: weight, bytes: weight * size as f64 };
            let LiveSample { stack, class, .. } = *sample;
            let stratum = Stratum::of(self.reservoir.window(sample), weight, size);
            found.add(PeakKey { stack, class, stratum }, allocated);
        }
        let mut position = 0;
        while let Some(key) = found.sums.key(position) {
            self.sites.retain(key.stack, key.class);
            position += 1;
        }
        if let Some(other) = self.peak.offer(found) {
            self.release_live_sums(other);
        }
    }

    /// Names some entries of the peak below `position`, downwards, as those of the tally are named.
    pub fn name_peak(&mut self, position: &mut usize) -> Result<(), Unnamed> {
        let Self { peak, sites, .. } = self;
        let Some(sums) = peak.sums_mut() else {
            *position = 0;
            return Ok(());
        };
        for _ in 0..STRIDE {
            *position = (*position).min(sums.len());
            let Some(last) = position.checked_sub(1) else { return Ok(()) };
            if let Some(&key) = sums.key(last) {
                if sites.are_unnamed(key.stack, key.class) {
                    let (stack, class) = sites.named(key.stack, key.class)?;
                    if let Some((_, allocated)) = sums.take(last) {
                        sites.retain(stack, class);
                        if !sums.add(PeakKey { stack, class, ..key }, allocated) {
                            sites.release(stack, class);
                        }
                        sites.release_source(key.stack, key.class);
                    }
                }
            }
            *position = last;
        }
        Ok(())
    }

    /// The stacks of the peak are lost, by `lose`, to make room for others; not during a flush, which holds them.
    pub(super) fn lose_stacks_of_peak(&mut self, lose: fn(&mut Stacks, StackId) -> StackId) {
        if self.flushing.is_some() {
            return;
        }
        let Self { peak, sites, .. } = self;
        let Some(sums) = peak.sums_mut() else { return };
        for (key, allocated) in std::mem::take(sums).into_entries() {
            let stack = lose(&mut sites.stacks, key.stack);
            if !sums.add(PeakKey { stack, ..key }, allocated) {
                sites.release(stack, key.class);
            }
        }
    }

    /// Forgets the peak.
    pub fn forget_peak(&mut self) {
        if let Some(peak) = self.peak.take() {
            self.release_live_sums(peak);
        }
    }

    fn release_live_sums(&mut self, live: LiveSums) {
        for (key, _) in live.sums.into_entries() {
            self.sites.release(key.stack, key.class);
        }
    }
}
