//! Ruby objects whose only purpose is to mark what some Rust structure refers to.
//!
//! If a reference was added to an old object, the next minor collection scans all of its references again. Spread over
//! several keepers, those are few.

use super::typed_data::TypedData;
use super::{gc, protect};
use crate::faults;
use magnus::Error;
use rb_sys::{VALUE, size_t};
use std::ffi::c_void;
use std::sync::OnceLock;

/// Marks what keeper number `number` of `owner` keeps alive.
pub type MarkPart = unsafe fn(owner: *const c_void, number: usize);

/// The data of a keeper.
struct Keeper {
    owner: *const c_void,
    /// The Ruby object that `owner` belongs to.
    holder: VALUE,
    number: usize,
    mark: MarkPart,
}

static TYPE: OnceLock<TypedData> = OnceLock::new();

/// Creates keeper number `number` of `owner`, which belongs to the Ruby object `holder`. The keeper keeps the holder
/// alive and in place: a stale value on a machine stack is enough for the GC to mark the keeper.
///
/// # Safety
/// The GVL must be held. `owner` must stay in place, and live as long as `holder`.
pub unsafe fn new(owner: *const c_void, holder: VALUE, number: usize, mark: MarkPart) -> Result<VALUE, Error> {
    let keeper = Box::into_raw(Box::new(Keeper { owner, holder, number, mark }));
    let data_type = TYPE.get_or_init(|| TypedData::new(c"ruby_memprofiler_pprof keeper", Some(mark_owner), free, size));
    let object = protect(|| {
        faults::point("keeper");
        // SAFETY: the type matches the data. An object without a class is hidden from ObjectSpace.
        unsafe { rb_sys::rb_data_typed_object_wrap(0, keeper.cast(), data_type.as_ptr()) }
    });
    if object.is_err() {
        // SAFETY: created above, and there is no object to free it.
        drop(unsafe { Box::from_raw(keeper) });
    }
    object
}

unsafe extern "C" fn mark_owner(keeper: *mut c_void) {
    // SAFETY: the data of a live keeper, which keeps its holder alive, and with it the owner.
    unsafe {
        let Keeper { owner, holder, number, mark } = *keeper.cast::<Keeper>();
        gc::mark(holder);
        mark(owner, number);
    }
}

unsafe extern "C" fn free(keeper: *mut c_void) {
    // SAFETY: made by Box::into_raw, and freed once.
    drop(unsafe { Box::from_raw(keeper.cast::<Keeper>()) });
}

unsafe extern "C" fn size(_keeper: *const c_void) -> size_t {
    size_of::<Keeper>() as size_t
}
