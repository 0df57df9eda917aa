//! The classes of sampled objects. They are known by the VM's objects until a flush has read their names, and by name
//! after that, so that the profiler keeps no class alive beyond the next flush.

use super::pins::Holder;
use crate::vm::gc;
use crate::vm::object::Type;
use memprofiler_core::interner::Interner;
use memprofiler_core::name_table::NameTable;
use memprofiler_core::reservoir::ClassId;
use rb_sys::VALUE;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// The class of a sampled object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A class or singleton class, from the object's header.
    Object(VALUE),
    /// A built-in type, for objects that are invisible to Ruby code.
    Internal(Type),
    /// A name, an id in the table of class names.
    Named(u32),
    /// Not recorded.
    Unknown,
}

impl Class {
    /// As the class table stores it. Heap references are multiples of 8; the others are not.
    pub fn key(self) -> u64 {
        match self {
            Self::Object(class) => class,
            Self::Internal(kind) => u64::from(kind.0) << 3 | 2,
            Self::Named(id) => u64::from(id) << 3 | 1,
            Self::Unknown => 4,
        }
    }

    /// The inverse of [`key`](Self::key).
    pub fn of(key: u64) -> Self {
        match key & 7 {
            0 => Self::Object(key as VALUE),
            1 => Self::Named((key >> 3) as u32),
            2 => Self::Internal(Type((key >> 3) as u8)),
            _ => Self::Unknown,
        }
    }

    /// From an object's header.
    pub fn of_header(flags: VALUE, class: VALUE) -> Self {
        let kind = Type::of_flags(flags);
        if class == 0 || kind.is_internal() { Self::Internal(kind) } else { Self::Object(class) }
    }
}

/// The referenced classes, by number, and their names.
#[derive(Debug, Default)]
pub struct Classes {
    ids: Interner<u64>,
    names: NameTable<str>,
    /// The class found last; the next object probably has the same.
    latest: Option<(u64, ClassId)>,
}

impl Classes {
    /// Reserves room for one more class; false if there is no memory for it.
    #[inline]
    pub fn try_reserve(&mut self) -> bool {
        self.ids.try_reserve(1)
    }

    /// The id of a class, with one reference for the caller. A class stored for the first time is announced to the GC
    /// as a reference of `holder`.
    ///
    /// # Safety
    /// Must be called in a hook or with the GVL held; the holder must be alive, and so must `class` if it is an object.
    #[inline]
    pub unsafe fn id(&mut self, class: Class, holder: &mut Holder<'_>) -> ClassId {
        let key = class.key();
        if let Some((latest, id)) = self.latest {
            if latest == key {
                self.ids.retain(id.0);
                return id;
            }
        }
        let (id, new) = self.ids.acquire(key);
        if new {
            if let Class::Object(value) = class {
                holder.pins.add(true);
                // SAFETY: in a hook or with the GVL held; both are alive.
                unsafe { gc::write_barrier(holder.object, value) };
            }
        }
        self.latest = Some((key, ClassId(id)));
        ClassId(id)
    }

    /// The id of this name, with one reference for the caller.
    pub fn named(&mut self, name: Arc<str>) -> ClassId {
        ClassId(self.ids.acquire(Class::Named(self.names.id(name)).key()).0)
    }

    /// What an id stands for.
    pub fn class(&self, id: ClassId) -> Class {
        Class::of(self.ids.key(id.0))
    }

    /// The name of a class that is known by name.
    pub fn name(&self, id: ClassId) -> Option<&Arc<str>> {
        match self.class(id) {
            Class::Named(name) => self.names.get(name),
            _ => None,
        }
    }

    /// Adds a reference to a class that has one.
    pub fn retain(&mut self, id: ClassId) {
        self.ids.retain(id.0);
    }

    /// Releases one reference.
    pub fn release(&mut self, id: ClassId) {
        if self.ids.release(id.0).is_some() && self.latest.is_some_and(|(_, latest)| latest == id) {
            self.latest = None;
        }
    }

    /// Makes `id` stand for what `named` stands for. The class it stood for gets another id from now on, and may be
    /// freed.
    pub fn detach(&mut self, id: ClassId, named: ClassId) {
        self.ids.detach(id.0, self.ids.key(named.0));
        self.latest = None;
    }

    /// The referenced classes of the VM.
    pub fn references(&self) -> impl Iterator<Item = VALUE> {
        self.references_of(0..usize::MAX)
    }

    /// Those with ids in a range.
    pub fn references_of(&self, ids: Range<usize>) -> impl Iterator<Item = VALUE> {
        self.ids.keys_of(ids).filter_map(|key| match Class::of(key) {
            Class::Object(class) => Some(class),
            _ => None,
        })
    }

    /// One past the highest id ever used.
    pub fn id_bound(&self) -> usize {
        self.ids.id_bound() as usize
    }

    /// Updates classes that compaction has moved; `location` returns the new address.
    pub fn relocate(&mut self, location: impl Fn(u64) -> u64) {
        let moved = |key| match Class::of(key) {
            Class::Object(class) => Class::Object(location(class)).key(),
            _ => key,
        };
        if self.ids.relocate(moved) {
            self.latest = None;
        }
    }

    /// Drops names that no class has any more.
    pub fn prune_names(&mut self) {
        let named = self.ids.keys_of(0..usize::MAX).filter_map(|key| match Class::of(key) {
            Class::Named(id) => Some(id),
            _ => None,
        });
        let used: HashSet<u32> = named.collect();
        self.names.prune(0..usize::MAX, |id| used.contains(&id));
    }

    /// Bytes held, except by names.
    pub fn bytes(&self) -> usize {
        self.ids.bytes()
    }

    /// Bytes held by names.
    pub fn name_bytes(&self) -> usize {
        self.names.bytes(str::len)
    }
}
