//! The ids by which pprof's tables are referred to.

use crate::hash::SecretState;
use std::collections::HashMap;

/// Maps ids to positions in their table. Most writers count 1, 2, 3 …, which takes no memory.
#[derive(Debug, Default)]
pub struct Ids {
    len: u32,
    /// How many of the first ids are in order.
    dense: u32,
    others: HashMap<u64, u32, SecretState>,
}

impl Ids {
    /// How many ids were noted.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Notes the id of the next entry. False if it cannot be one: it is 0, or taken.
    pub fn push(&mut self, id: u64) -> bool {
        let position = self.len;
        if id == 0 || self.get(id).is_some() {
            return false;
        }
        self.len += 1;
        if position == self.dense && id == u64::from(position) + 1 {
            self.dense += 1;
        } else {
            self.others.insert(id, position);
        }
        true
    }

    /// The position of the entry with that id.
    #[inline]
    pub fn get(&self, id: u64) -> Option<u32> {
        if id.wrapping_sub(1) < u64::from(self.dense) { Some(id as u32 - 1) } else { self.others.get(&id).copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_numbers_can_be_ids_but_for_0_and_those_taken() {
        let mut ids = Ids::default();
        let accepted = [1, 2, 0, 2, 9, 3, u64::MAX, 9, 7].map(|id| ids.push(id));
        assert_eq!(accepted, [true, true, false, false, true, true, true, false, true]);
        assert_eq!([1, 2, 9, 3, u64::MAX, 7].map(|id| ids.get(id)), [0, 1, 2, 3, 4, 5].map(Some));
        assert_eq!([0, 4, 8].map(|id| ids.get(id)), [None; 3]);
    }
}
