//! The samples whose objects are alive.

use super::address_index::{self, AddressIndex, Probe};
use super::sample::LiveSample;

/// A garbage collection's verdict on a sampled object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is not reachable.
    Dead,
    /// It is alive; any later collection may find it dead.
    Young,
    /// It is alive; only a major collection can find it dead.
    Old,
}

/// A dense list of samples. Old ones come first, otherwise they are in no particular order.
#[derive(Debug)]
pub struct LiveSet {
    samples: Vec<LiveSample>,
    /// How many of the samples are known to be old.
    old: usize,
    index: Option<AddressIndex>,
    /// Counts the changes that move samples up the list.
    reorderings: u32,
}

impl LiveSet {
    /// The maximum size of a set.
    pub const MAX_SAMPLES: usize = address_index::MAX_SAMPLES;

    /// An empty set whose samples can be found by address.
    pub fn by_address() -> Self {
        Self { samples: Vec::new(), old: 0, index: Some(AddressIndex::default()), reorderings: 0 }
    }

    /// An empty set whose samples are only ever visited in turn.
    pub fn by_position() -> Self {
        Self { samples: Vec::new(), old: 0, index: None, reorderings: 0 }
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The samples.
    pub fn samples(&self) -> &[LiveSample] {
        &self.samples
    }

    /// The sample at `position` in [`samples`](Self::samples); its address must not be changed.
    pub fn sample_mut(&mut self, position: usize) -> Option<&mut LiveSample> {
        self.samples.get_mut(position)
    }

    /// All samples; their addresses must not be changed.
    pub fn samples_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut LiveSample> {
        self.samples.iter_mut()
    }

    /// A number that changes whenever samples move up the list. While it stays the same none do, so a walk down the
    /// list meets every sample that was there at its start.
    pub fn reorderings(&self) -> u32 {
        self.reorderings
    }

    /// Reserves room for one more sample; false if there is no memory for it.
    #[inline]
    pub fn try_reserve(&mut self) -> bool {
        if self.samples.len() == self.samples.capacity()
            // Doubling would leave up to half of the memory unused.
            && self.samples.try_reserve_exact(self.samples.len() / 4 + 64).is_err()
        {
            return false;
        }
        match &mut self.index {
            Some(index) if index.is_full(self.samples.len()) => {
                index.rebuild(self.samples.len(), addresses(&self.samples))
            }
            _ => true,
        }
    }

    /// Adds a sample. Returns the one that was at the same address, if the set finds samples by address and has one.
    #[inline]
    pub fn insert(&mut self, sample: LiveSample) -> Option<LiveSample> {
        // A caller that must know whether this works has reserved room before.
        self.try_reserve();
        if let Some(index) = &mut self.index {
            match index.probe(sample.address, addresses(&self.samples)) {
                Some(Probe::Found { position, .. }) => {
                    return Some(std::mem::replace(&mut self.samples[position], sample));
                }
                Some(Probe::Free(slot)) => index.fill(slot, sample.address, self.samples.len()),
                None => {}
            }
        }
        self.samples.push(sample);
        None
    }

    /// Whether there may be a sample at `address`: a quick test with a few false positives.
    #[inline]
    pub fn may_have(&self, address: u64) -> bool {
        self.index.as_ref().is_some_and(|index| index.may_have(address))
    }

    /// Removes and returns the sample at `address`, if there is one and the set finds samples by address.
    #[inline]
    pub fn remove(&mut self, address: u64) -> Option<LiveSample> {
        let index = self.index.as_mut()?;
        let address_at = addresses(&self.samples);
        let Probe::Found { slot, position } = index.probe(address, address_at)? else { return None };
        index.empty(slot, address_at);
        let last = self.samples.len() - 1;
        if position != last {
            if let Some(Probe::Found { slot, .. }) = index.probe(address_at(last), address_at) {
                index.redirect(slot, position);
            }
        }
        Some(self.samples.swap_remove(position))
    }

    /// Removes and returns the sample at `position` in [`samples`](Self::samples); another takes its place.
    pub fn remove_at(&mut self, mut position: usize) -> Option<LiveSample> {
        let address = self.samples.get(position)?.address;
        if self.index.is_some() {
            return self.remove(address);
        }
        if position < self.old {
            self.old -= 1;
            self.samples.swap(position, self.old);
            position = self.old;
        }
        Some(self.samples.swap_remove(position))
    }

    /// Asks for the fate of each sample after a garbage collection, but of the old ones only after a `major` one.
    /// Removes the dead and passes them to `bury`. `fate` learns whether a sample is known to be old, to avoid finding
    /// that out again. For sets by position.
    pub fn collect(
        &mut self,
        major: bool,
        mut fate: impl FnMut(&LiveSample, bool) -> Fate,
        mut bury: impl FnMut(LiveSample),
    ) {
        debug_assert!(self.index.is_none());
        let mut position = if major { 0 } else { self.old };
        while let Some(sample) = self.samples.get(position) {
            match fate(sample, position < self.old) {
                Fate::Dead => {
                    // Most die young.
                    if position >= self.old {
                        bury(self.samples.swap_remove(position));
                    } else if let Some(dead) = self.remove_at(position) {
                        bury(dead);
                    }
                    // Another sample, which was not checked yet, is now at this position.
                    continue;
                }
                Fate::Old if position >= self.old => {
                    self.samples.swap(position, self.old);
                    self.old += 1;
                    self.reorderings += 1;
                }
                Fate::Old | Fate::Young => {}
            }
            position += 1;
        }
    }

    /// Updates the address of each sample to what `moved` returns for it.
    pub fn relocate(&mut self, mut moved: impl FnMut(u64) -> u64) {
        let mut changed = false;
        for sample in &mut self.samples {
            let address = moved(sample.address);
            changed |= address != sample.address;
            sample.address = address;
        }
        if changed {
            if let Some(index) = &mut self.index {
                index.rebuild(self.samples.len(), addresses(&self.samples));
            }
        }
    }

    /// Removes all samples and returns them.
    pub fn drain(&mut self) -> Vec<LiveSample> {
        self.old = 0;
        if let Some(index) = &mut self.index {
            index.clear();
        }
        std::mem::take(&mut self.samples)
    }

    /// Frees memory that a set of this size does not need.
    pub fn shrink(&mut self) {
        if self.samples.capacity() > 2 * self.samples.len() + 1024 {
            self.samples.shrink_to(self.samples.len() * 5 / 4);
            if let Some(index) = &mut self.index {
                index.rebuild(self.samples.len(), addresses(&self.samples));
            }
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.samples.capacity() * size_of::<LiveSample>() + self.index.as_ref().map_or(0, AddressIndex::bytes)
    }
}

/// Returns the address of the sample at a position.
fn addresses(samples: &[LiveSample]) -> impl Fn(usize) -> u64 + Copy {
    |position| samples[position].address
}
