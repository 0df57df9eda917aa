//! The classes of objects, as far as a walk needs them.

use super::super::class_names::visible_class;
use super::super::object::{class, is_heap};
use super::text;
use memprofiler_core::graph::Kind;
use rb_sys::VALUE;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What instances with some class word have in common.
#[derive(Debug, Clone, Copy, Default)]
pub struct Class {
    /// The class word: the class, or a singleton class, or 0.
    pub word: VALUE,
    /// The class that a Ruby program sees, or 0.
    pub visible: VALUE,
    /// Whether the reference from an instance to it says nothing: it has a name, and another instance refers to it.
    pub implied: bool,
}

/// Hashes an address.
#[derive(Default)]
pub struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, _bytes: &[u8]) {}

    fn write_u64(&mut self, address: u64) {
        self.0 = address.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A map from addresses.
pub type ByAddress<T> = HashMap<u64, T, BuildHasherDefault<AddressHasher>>;

const RECENT: usize = 1024;

/// The classes seen so far.
pub struct Classes {
    recent: Box<[Class; RECENT]>,
    all: ByAddress<Class>,
}

impl Classes {
    /// None seen.
    pub fn new() -> Self {
        Self { recent: Box::new([Class::default(); RECENT]), all: ByAddress::default() }
    }

    /// The class of `object`. The reference to it is not implied by the first of its instances: a class whose constant
    /// was removed lives through them.
    ///
    /// # Safety
    /// The GVL must be held; `object` must be alive, and no T_IMEMO or T_ICLASS.
    #[inline]
    pub unsafe fn of(&mut self, object: VALUE) -> Class {
        // SAFETY: the object is alive.
        let word = unsafe { class(object) };
        let slot = (word >> 3) as usize % RECENT;
        if self.recent[slot].word == word {
            return self.recent[slot];
        }
        if let Some(&known) = self.all.get(&word) {
            self.recent[slot] = known;
            return known;
        }
        // SAFETY: the class of a live object is alive.
        let class = unsafe { Class::of_word(word) };
        self.all.insert(word, class);
        Class { implied: false, ..class }
    }
}

impl Class {
    /// # Safety
    /// The GVL must be held, and `word` be the class word of a live object.
    unsafe fn of_word(word: VALUE) -> Self {
        if !is_heap(word) {
            return Self { word, ..Self::default() };
        }
        // SAFETY: the class is alive, and so are its ancestors.
        let (visible, kind) = unsafe { (visible_class(word).unwrap_or(0), kind(word)) };
        Self { word, visible, implied: kind == Kind::Anchor }
    }
}

/// What a class or module means to a search.
///
/// # Safety
/// The GVL must be held; `class` must be a live class or module.
pub unsafe fn kind(class: VALUE) -> Kind {
    // SAFETY: it is alive.
    if unsafe { text::class_path(class) }.is_some() { Kind::Anchor } else { Kind::Plain }
}
