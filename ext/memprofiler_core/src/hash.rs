//! Hashers: fixed seeds for keys that the program makes itself, random seeds for all others.

use ahash::RandomState;
use std::collections::HashMap;
use std::hash::BuildHasher;

/// A map hashed by ahash with fixed seeds: equal input gives equal output, and a hook never asks the system for
/// entropy. Its keys are addresses and ids that the program makes itself, so nobody can choose them to collide.
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

/// Hashes with secret random seeds. For keys that somebody could choose to collide: strings from a file, or labels
/// taken from requests.
#[derive(Debug, Clone)]
pub struct SecretState(RandomState);

impl Default for SecretState {
    fn default() -> Self {
        // The only portable source of random numbers in the standard library.
        let random = std::hash::RandomState::new();
        // Nobody attacks a fuzzer, and a run must reproduce what another run with the same seed found.
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
    fn hashes_differ_between_secret_states() {
        let hashes = [(); 8].map(|()| SecretState::default().hash_one("key"));
        assert!(hashes[1..].iter().all(|hash| *hash != hashes[0]), "{hashes:?}");
        let secret = SecretState::default();
        assert_eq!(secret.hash_one("key"), secret.clone().hash_one("key"));
    }
}
