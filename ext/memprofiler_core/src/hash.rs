//! The one kind of hash map used here.

use ahash::RandomState;
use std::collections::HashMap;
use std::hash::BuildHasher;

/// A map hashed by ahash with fixed seeds: equal input gives equal output, and no entropy is asked of the system inside
/// a hook. Keys are addresses and ids of the program's own, so nobody can choose them to collide.
pub type Map<K, V> = HashMap<K, V, FixedState>;

/// See [`Map`].
#[derive(Debug, Clone)]
pub struct FixedState(RandomState);

impl Default for FixedState {
    fn default() -> Self {
        Self(RandomState::with_seeds(0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344))
    }
}

impl BuildHasher for FixedState {
    type Hasher = ahash::AHasher;

    #[inline]
    fn build_hasher(&self) -> Self::Hasher {
        self.0.build_hasher()
    }
}

/// Bytes that a map holds, apart from what its keys and values own. Beside each pair hashbrown keeps a control byte,
/// and it fills its table to 7/8.
pub fn map_bytes<K, V>(map: &Map<K, V>) -> usize {
    map.capacity() * 8 / 7 * (size_of::<(K, V)>() + 1)
}
