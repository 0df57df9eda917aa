//! Asks the garbage collector, at the end of its mark phase, which objects are alive.
//!
//! The functions are exported but in no public header, and differ between Rubies, so they are looked up when needed
//! (symbols.rs).

use super::object::{Type, disguised, flags};
use super::symbols::lookup;
use crate::faults;
use magnus::rb_sys::{AsRawId, AsRawValue};
use magnus::{Class, Ruby};
use memprofiler_core::reservoir::Fate;
use rb_sys::{ID, VALUE};
use std::ffi::{CStr, c_char, c_int, c_void};

/// `int rb_objspace_marked_object_p(VALUE)`, Ruby 3.1 to 3.3.
type MarkedP = unsafe extern "C" fn(VALUE) -> c_int;
/// `size_t rb_obj_gc_flags(VALUE, ID *flags, size_t max)`, Ruby 3.1 to 3.4.
type GcFlags = unsafe extern "C" fn(VALUE, *mut ID, usize) -> usize;
/// `struct rb_gc_object_metadata_entry *rb_gc_object_metadata(VALUE)`, Ruby 4.0.
type Metadata = unsafe extern "C" fn(VALUE) -> *const MetadataEntry;

/// `struct rb_gc_object_metadata_entry`; a list of them ends with a name of 0.
#[repr(C)]
struct MetadataEntry {
    name: ID,
    value: VALUE,
}

/// How to ask on this Ruby.
#[derive(Debug, Clone, Copy)]
pub struct MarkBits {
    query: Query,
    marked: ID,
    old: ID,
}

/// The part of an object's header in which Ruby 4.0 keeps its shape, restricted to the shape's flags, one of which says
/// that the object has an `object_id`.
const SHAPE_FLAGS: VALUE = !0 << (32 + 22);

#[derive(Debug, Clone, Copy)]
enum Query {
    /// A function for each of the two questions.
    Separate(MarkedP, GcFlags),
    Flags(GcFlags),
    Metadata(Metadata),
}

impl MarkBits {
    /// How many garbage collections an object must have survived to make it worth asking whether it is old. Some are
    /// old sooner.
    pub const OLD_AGE: u32 = 3;

    /// None if this Ruby or its garbage collector does not provide this.
    pub fn find(ruby: &Ruby) -> Option<Self> {
        // A garbage collector loaded in place of the default one may lack END_MARK.
        if active_collector().is_some_and(|name| name != c"default") || faults::denied("default GC") {
            return None;
        }
        // SAFETY: the functions have these types wherever they exist.
        let query = unsafe {
            let marked_p =
                lookup(c"rb_objspace_marked_object_p").map(|f| std::mem::transmute::<*mut c_void, MarkedP>(f));
            let flags = lookup(c"rb_obj_gc_flags").map(|f| std::mem::transmute::<*mut c_void, GcFlags>(f));
            let metadata = lookup(c"rb_gc_object_metadata").map(|f| std::mem::transmute::<*mut c_void, Metadata>(f));
            match (marked_p, flags, metadata) {
                (Some(marked_p), Some(flags), _) => Query::Separate(marked_p, flags),
                (None, Some(flags), _) => Query::Flags(flags),
                (_, None, Some(metadata)) => Query::Metadata(metadata),
                _ => return None,
            }
        };
        let marks = Self { query, marked: ruby.intern("marked").as_raw(), old: ruby.intern("old").as_raw() };
        // The first call allocates, which a hook must not do. Not by `fate`, which asks less about an object that is not
        // marked: before the first collection none is.
        // SAFETY: the GVL is held, as `ruby` shows; Object never dies, and a class keeps its `object_id` elsewhere
        // (gc.c, class_object_id).
        unsafe {
            match query {
                Query::Separate(_, flags) | Query::Flags(flags) => marks.flags(flags, rb_sys::rb_cObject),
                Query::Metadata(metadata) => marks.metadata(metadata, rb_sys::rb_cObject),
            }
        };
        marks.is_safe(ruby).then_some(marks)
    }

    /// Whether asking about an object with an `object_id` looks that id up, which a hook must not do.
    fn is_safe(&self, ruby: &Ruby) -> bool {
        let Query::Metadata(metadata) = self.query else { return true };
        let object_id = ruby.intern("object_id").as_raw();
        let Ok(object) = ruby.class_object().new_instance(()) else { return false };
        // SAFETY: `object` is alive, since it is on this stack.
        unsafe { rb_sys::rb_obj_id(object.as_raw()) };
        let mut looked_up = false;
        // SAFETY: the object is on this stack, and the GVL held.
        unsafe { each_entry(metadata, object.as_raw(), |name, _| looked_up |= name == object_id) };
        !looked_up
    }

    /// The current garbage collection's verdict on `object`; checks whether it is old only if it `may_be`.
    ///
    /// # Safety
    /// Must be called in a GC_END_MARK hook, for an `object` that no earlier collection has swept; or with the GVL
    /// held, for a live object that has no `object_id` in its shape.
    #[inline]
    pub unsafe fn fate(&self, object: VALUE, may_be_old: bool) -> Fate {
        // SAFETY: each of the functions reads the bits that belong to a slot, and the slot of `object` still contains
        // it.
        let (marked, old) = unsafe {
            match self.query {
                Query::Separate(marked_p, flags) => {
                    let marked = marked_p(object) != 0;
                    (marked, marked && may_be_old && self.flags(flags, object).1)
                }
                Query::Flags(flags) => self.flags(flags, object),
                Query::Metadata(metadata) => self.metadata(metadata, object),
            }
        };
        match (marked, old) {
            (false, _) => Fate::Dead,
            (true, false) => Fate::Young,
            (true, true) => Fate::Old,
        }
    }

    /// # Safety
    /// As for [`fate`](Self::fate).
    unsafe fn flags(&self, function: GcFlags, object: VALUE) -> (bool, bool) {
        let mut flags = [0; 8];
        // SAFETY: the function writes at most as many flags as the given length.
        let count = unsafe { function(object, flags.as_mut_ptr(), flags.len()) };
        let flags = &flags[..count.min(flags.len())];
        (flags.contains(&self.marked), flags.contains(&self.old))
    }

    /// # Safety
    /// As for [`fate`](Self::fate).
    unsafe fn metadata(&self, function: Metadata, object: VALUE) -> (bool, bool) {
        let (mut marked, mut old) = (false, false);
        // SAFETY: `object` is on the heap, and nobody else sees its disguise: in the hook the GC keeps all others away
        // from it, and without an `object_id` in its shape it is not disguised.
        unsafe {
            each_entry(function, object, |name, value| {
                let is_true = value == rb_sys::Qtrue as VALUE;
                marked |= name == self.marked && is_true;
                old |= name == self.old && is_true;
            });
        }
        (marked, old)
    }
}

/// Calls `body` with each name and value that the garbage collector has for `object`, except its `object_id`. Looking
/// that up may allocate, once there have been Ractors. A T_IMEMO has none, so the object is disguised as one.
///
/// # Safety
/// `object` must be on the heap, and no other thread may look at it meanwhile.
unsafe fn each_entry(metadata: Metadata, object: VALUE, mut body: impl FnMut(ID, VALUE)) {
    // SAFETY: `object` is on the heap, and no other thread sees its disguise. The function returns a static list that
    // ends with a name of 0.
    unsafe {
        let may_have_id = flags(object) & SHAPE_FLAGS != 0;
        let ask = || metadata(object);
        let mut entry = if may_have_id { disguised(object, Type::IMEMO, ask) } else { ask() };
        while (*entry).name != 0 {
            body((*entry).name, (*entry).value);
            entry = entry.add(1);
        }
    }
}

/// The name of the garbage collector that was loaded, from Ruby 3.4 on; None for the built-in one.
pub fn active_collector() -> Option<&'static CStr> {
    let function = lookup(c"rb_gc_active_gc_name")?;
    // SAFETY: `const char *rb_gc_active_gc_name(void)`, gc.c; returns NULL for the built-in one.
    let name = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *const c_char>(function)() };
    // SAFETY: a C string that lives as long as the VM.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
}
