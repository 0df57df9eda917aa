//! How hash tables hash: keys of the program's own with fixed seeds, all others with random ones.

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

/// Hashes with seeds that nobody knows: for keys that others could choose to collide, as the author of a file, or whoever
/// sends the requests that labels are taken from.
#[derive(Debug, Clone)]
pub struct SecretState(RandomState);

impl Default for SecretState {
    fn default() -> Self {
        // The only portable source of random numbers in the standard library.
        let random = std::hash::RandomState::new();
        // While fuzzing nobody attacks, and a run must repeat what another with its seed has found.
        let seed = |number: u64| if cfg!(fuzzing) { number } else { random.hash_one(number) };
        Self(RandomState::with_seeds(seed(0), seed(1), seed(2), seed(3)))
    }
}

impl BuildHasher for SecretState {
    type Hasher = ahash::AHasher;

    #[inline]
    fn build_hasher(&self) -> Self::Hasher {
        self.0.build_hasher()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_secret_state_makes_of_a_key_is_known_from_no_other() {
        let hashes = [(); 8].map(|()| SecretState::default().hash_one("key"));
        assert!(hashes[1..].iter().all(|hash| *hash != hashes[0]), "{hashes:?}");
        let secret = SecretState::default();
        assert_eq!(secret.hash_one("key"), secret.clone().hash_one("key"));
    }
}
