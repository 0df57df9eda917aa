//! The classes of objects, as far as a walk needs them.

use super::super::class_names::visible_class;
use super::super::object::{Type, class, is_heap, type_of};
use super::prepared::Prepared;
use super::{tables, text};
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
    /// Whether the reference from an instance to it says nothing: it is [named](Named), and another instance refers to
    /// it.
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

/// The named classes and modules: those that constants lead to, from Object on. One whose constant was removed, as by a
/// reload, still has its path as a name, but lives only through what refers to it.
pub struct Named(Option<ByAddress<()>>);

impl Named {
    /// Follows all constants.
    ///
    /// # Safety
    /// The GVL must be held, and no other thread run Ruby code before this function returns.
    pub unsafe fn new(prepared: &Prepared) -> Self {
        if !prepared.checked.constants {
            return Self(None);
        }
        // SAFETY: Object never dies.
        let object = unsafe { rb_sys::rb_cObject };
        let mut named = ByAddress::from_iter([(object, ())]);
        let mut left = vec![object];
        while let Some(scope) = left.pop() {
            // SAFETY: a live class or module, and so is what a constant refers to.
            for constant in unsafe { tables::constants(scope) } {
                // SAFETY: as above.
                let is_scope = matches!(unsafe { type_of(constant.value) }, Type::CLASS | Type::MODULE);
                if is_scope && named.insert(constant.value, ()).is_none() {
                    left.push(constant.value);
                }
            }
        }
        // Where this gem's own module is not found, as in a box of Ruby 4.0, neither is the program.
        Self(named.contains_key(&prepared.own_module).then_some(named))
    }

    /// What a class or module means to a search.
    ///
    /// # Safety
    /// The GVL must be held; `class` must be a live class or module.
    pub unsafe fn kind(&self, class: VALUE) -> Kind {
        let is_named = match &self.0 {
            Some(named) => named.contains_key(&class),
            // SAFETY: it is alive.
            None => unsafe { text::class_path(class) }.is_some(),
        };
        if is_named { Kind::Anchor } else { Kind::Plain }
    }
}

/// The classes seen so far.
pub struct Classes {
    /// Which classes are named.
    pub named: Named,
    recent: Box<[Class; RECENT]>,
    all: ByAddress<Class>,
}

impl Classes {
    /// None seen.
    pub fn new(named: Named) -> Self {
        Self { named, recent: Box::new([Class::default(); RECENT]), all: ByAddress::default() }
    }

    /// The class of `object`. The reference to it is not implied by the first of its instances: a class may live through
    /// them although it is named, if it cannot be told which are.
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
        let class = unsafe { self.of_word(word) };
        self.all.insert(word, class);
        Class { implied: false, ..class }
    }

    /// # Safety
    /// The GVL must be held, and `word` be the class word of a live object.
    unsafe fn of_word(&self, word: VALUE) -> Class {
        if !is_heap(word) {
            return Class { word, ..Class::default() };
        }
        // SAFETY: the class is alive, and so are its ancestors.
        let (visible, kind) = unsafe { (visible_class(word).unwrap_or(0), self.named.kind(word)) };
        Class { word, visible, implied: kind == Kind::Anchor }
    }
}
