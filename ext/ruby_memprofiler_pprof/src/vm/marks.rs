//! Asking the garbage collector, at the end of its mark phase, which objects are alive.
//!
//! The functions are exported but in no public header, and each Ruby has others: they are looked up when needed.

use magnus::Ruby;
use magnus::rb_sys::AsRawId;
use memprofiler_core::live_set::Fate;
use rb_sys::{ID, VALUE};
use std::ffi::{CStr, c_char, c_int, c_void};

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, symbol: *const c_char) -> *mut c_void;
}

/// All libraries of the process.
#[cfg(target_os = "macos")]
const RTLD_DEFAULT: *mut c_void = -2isize as *mut c_void;
/// All libraries of the process.
#[cfg(not(target_os = "macos"))]
const RTLD_DEFAULT: *mut c_void = std::ptr::null_mut();

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

/// How many garbage collections an object survives before it is old.
const OLD_AGE: u32 = 3;

/// The way to ask on this Ruby.
#[derive(Debug, Clone, Copy)]
pub struct Marks {
    query: Query,
    marked: ID,
    old: ID,
}

#[derive(Debug, Clone, Copy)]
enum Query {
    /// One function for each of the two questions.
    Separate(MarkedP, GcFlags),
    Flags(GcFlags),
    Metadata(Metadata),
}

impl Marks {
    /// None if this Ruby or its garbage collector cannot be asked.
    pub fn find(ruby: &Ruby) -> Option<Self> {
        // A garbage collector that was loaded instead of the default one may have no END_MARK.
        if lookup(c"rb_gc_active_gc_name").is_some_and(|name| {
            // SAFETY: `const char *rb_gc_active_gc_name(void)`, gc.c; returns NULL for the built-in one.
            let name = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *const c_char>(name)() };
            // SAFETY: a C string that lives as long as the VM.
            !name.is_null() && unsafe { CStr::from_ptr(name) } != c"default"
        }) {
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
        // The first call allocates, which a hook must not.
        // SAFETY: a class is an object on the heap.
        unsafe { marks.fate(rb_sys::rb_cObject, OLD_AGE) };
        Some(marks)
    }

    /// What the garbage collection under way says of `object`, which has survived `age` collections so far.
    ///
    /// # Safety
    /// In a GC_END_MARK hook; `object` not swept by an earlier collection.
    #[inline]
    pub unsafe fn fate(&self, object: VALUE, age: u32) -> Fate {
        // SAFETY: the caller's promise holds for each call.
        let (marked, old) = unsafe {
            match self.query {
                Query::Separate(marked_p, flags) => {
                    let marked = marked_p(object) != 0;
                    (marked, marked && age >= OLD_AGE && self.flags(flags, object).1)
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
        // SAFETY: the function writes at most as many flags as it is told.
        let count = unsafe { function(object, flags.as_mut_ptr(), flags.len()) };
        let flags = &flags[..count.min(flags.len())];
        (flags.contains(&self.marked), flags.contains(&self.old))
    }

    /// # Safety
    /// As for [`fate`](Self::fate).
    unsafe fn metadata(&self, function: Metadata, object: VALUE) -> (bool, bool) {
        // SAFETY: the function returns a static list that ends with a name of 0.
        unsafe {
            let mut entry = function(object);
            let (mut marked, mut old) = (false, false);
            while (*entry).name != 0 {
                let is_true = (*entry).value == rb_sys::Qtrue as VALUE;
                marked |= (*entry).name == self.marked && is_true;
                old |= (*entry).name == self.old && is_true;
                entry = entry.add(1);
            }
            (marked, old)
        }
    }
}

fn lookup(symbol: &CStr) -> Option<*mut c_void> {
    // SAFETY: only searches.
    let found = unsafe { dlsym(RTLD_DEFAULT, symbol.as_ptr()) };
    (!found.is_null()).then_some(found)
}
