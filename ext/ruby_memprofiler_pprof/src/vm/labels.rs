//! The labels of the running fiber.
//!
//! They are a fiber-local variable, `Thread.current[NAME]`. The VM forgets it together with the fiber, even one that is
//! abandoned in the middle of a block, so no other fiber can inherit it.

use super::protect;
use super::typed_data::TypedData;
use crate::faults;
use magnus::rb_sys::{AsRawId, AsRawValue};
use magnus::value::{Opaque, ReprValue};
use magnus::{Class, Error, Module, RClass, RModule, Ruby, Value};
use memprofiler_core::labels::LabelSet;
use rb_sys::{ID, VALUE, size_t};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The name of the variable.
const NAME: &str = "__ruby_memprofiler_pprof_labels__";

/// Its ID, or 0 until a fiber has labels for the first time.
static VARIABLE: AtomicUsize = AtomicUsize::new(0);

static TYPE: OnceLock<TypedData> = OnceLock::new();

/// The class of the values: a program that lists a thread's variables sees them, and may call any method on them.
static CLASS: OnceLock<Opaque<RClass>> = OnceLock::new();

/// Defines that class, once.
pub fn define_class(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("LabelSet", ruby.class_object())?;
    class.undef_default_alloc_func();
    module.funcall::<_, _, Value>("private_constant", ("LabelSet",))?;
    ruby.gc_register_mark_object(class);
    CLASS.get_or_init(|| Opaque::from(class));
    Ok(())
}

/// The labels of the running fiber, borrowed from the VM. Allocates nothing and runs no Ruby code.
///
/// # Safety
/// Must be called in a hook, or with the GVL held. Give the labels up before the fiber continues, which may change its
/// labels.
#[inline]
pub unsafe fn current() -> Option<ManuallyDrop<Arc<LabelSet>>> {
    match VARIABLE.load(Ordering::Relaxed) {
        0 => None,
        // SAFETY: in a hook or with the GVL held; the caller gives the labels up before the fiber continues.
        variable => unsafe { read(variable as ID, rb_sys::rb_thread_current()) },
    }
}

/// The labels of the current fiber of `thread`, as [`current`].
///
/// # Safety
/// The GVL must be held, and `thread` be a living Thread of this Ractor; give the labels up before another thread runs.
pub unsafe fn of(thread: VALUE) -> Option<ManuallyDrop<Arc<LabelSet>>> {
    match VARIABLE.load(Ordering::Relaxed) {
        0 => None,
        // SAFETY: with the GVL held; the caller gives the labels up before the thread continues.
        variable => unsafe { read(variable as ID, thread) },
    }
}

/// # Safety
/// As for [`of`]; or in a hook, of the running thread.
#[inline(never)]
unsafe fn read(variable: ID, thread: VALUE) -> Option<ManuallyDrop<Arc<LabelSet>>> {
    let data_type = TYPE.get()?.as_ptr();
    // SAFETY: looks into a table that belongs to the thread's current fiber, which does not run meanwhile; nothing
    // allocates a Ruby object while it changes such a table. Whatever else a program may put into the variable is not
    // of this type. A value of this type has a pointer made by Arc::into_raw, and is kept alive by the variable.
    unsafe {
        let value = rb_sys::rb_thread_local_aref(thread, variable);
        if rb_sys::rb_typeddata_is_kind_of(value, data_type) == 0 {
            return None;
        }
        let labels = rb_sys::rb_check_typeddata(value, data_type);
        Some(ManuallyDrop::new(Arc::from_raw(labels.cast::<LabelSet>())))
    }
}

/// A value of the variable.
#[derive(Debug, Clone, Copy)]
pub struct Variable(VALUE);

impl Variable {
    /// The value for `labels`.
    pub fn new(ruby: &Ruby, labels: LabelSet) -> Result<Self, Error> {
        let variable = protect(|| ruby.intern(NAME).as_raw())?;
        VARIABLE.store(variable as usize, Ordering::Relaxed);
        let data_type = TYPE.get_or_init(|| TypedData::new(c"ruby_memprofiler_pprof labels", None, free, size));
        // Calling a method on an object without a class would crash; `define_class` has run long before.
        let class = CLASS.get().map_or(0, |&class| ruby.get_inner(class).as_raw());
        let labels = Arc::into_raw(Arc::new(labels));
        let object = protect(|| {
            faults::point("labels");
            // SAFETY: the GVL is held, as `ruby` shows, and the type matches the data.
            unsafe { rb_sys::rb_data_typed_object_wrap(class, labels.cast_mut().cast(), data_type.as_ptr()) }
        });
        if object.is_err() {
            // SAFETY: created above, and there is no object to free them.
            drop(unsafe { Arc::from_raw(labels) });
        }
        object.map(Self)
    }

    /// Sets the variable in the running fiber, and returns the previous value. Fails if the thread is frozen.
    pub fn swap(self) -> Result<Self, Error> {
        let variable = VARIABLE.load(Ordering::Relaxed) as ID;
        protect(|| {
            // SAFETY: the GVL is held.
            unsafe {
                let thread = rb_sys::rb_thread_current();
                let previous = rb_sys::rb_thread_local_aref(thread, variable);
                rb_sys::rb_thread_local_aset(thread, variable, self.0);
                Self(previous)
            }
        })
    }
}

unsafe extern "C" fn free(labels: *mut c_void) {
    // SAFETY: made by Arc::into_raw, and freed once.
    drop(unsafe { Arc::from_raw(labels.cast::<LabelSet>()) });
}

unsafe extern "C" fn size(labels: *const c_void) -> size_t {
    // SAFETY: the data of a living object.
    unsafe { &*labels.cast::<LabelSet>() }.bytes() as size_t
}
