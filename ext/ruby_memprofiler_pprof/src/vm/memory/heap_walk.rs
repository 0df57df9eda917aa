//! Every slot of Ruby's heap: which have objects, and how much memory those own.

use super::super::heap::{Callback, DataType, data};
use super::super::iseq::imemo_type;
use super::super::object::{Type, flags};
use super::super::{layout, memsize, protect};
use super::transient;
use crate::faults;
use magnus::{Error, Ruby};
use memprofiler_core::hash::Map;
use memprofiler_core::ledger::HeapPage;
use rb_sys::VALUE;
use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

/// `int callback(void *start, void *end, size_t stride, void *data)`.
type PageCallback = unsafe extern "C" fn(*mut c_void, *mut c_void, usize, *mut c_void) -> c_int;

unsafe extern "C" {
    /// gc.c; exported by every Ruby from 3.1 to 4.0 but in no public header. Finishes the current collection, and calls
    /// the function for the slots of each page in use. Where that returns true, it continues with the next heap.
    fn rb_objspace_each_objects(callback: PageCallback, data: *mut c_void);
}

/// How long other threads have to wait at a time.
const SLICE: Duration = Duration::from_millis(5);

/// What was found.
#[derive(Debug, Default)]
pub struct HeapWalk {
    /// The pages in use, in order.
    pub pages: Vec<HeapPage>,
    /// The bytes that objects own outside their slots, without the rest.
    pub object_memory: u64,
    /// The same of instruction sequences.
    pub code: u64,
    /// The same of the profiler's objects.
    pub profiler: u64,
    /// Where the VM has the data of threads.
    pub threads: Vec<u64>,
}

impl HeapWalk {
    /// The bytes of slots that have objects.
    pub fn live_bytes(&self) -> u64 {
        self.pages.iter().map(HeapPage::live_bytes).sum()
    }

    /// The bytes of pages with objects.
    pub fn used_pages(&self) -> u64 {
        self.pages.iter().filter(|page| page.live > 0).map(|page| page.end - page.start).sum()
    }
}

struct Walk<'a> {
    ruby: &'a Ruby,
    page_size: u64,
    found: HeapWalk,
    /// The pages by address, each with the round that has last seen it.
    pages: Map<u64, (HeapPage, u32)>,
    round: u32,
    /// When this round has to end; None before its first new page, however long it takes to come to that.
    deadline: Option<Instant>,
    /// Whether there are pages that this round has not come to.
    is_late: bool,
    failure: Option<Error>,
}

/// Walks over the heap in slices, and calls `rest` between them. What is made, freed or moved meanwhile may be missing,
/// or counted twice. `page_size` is that of the heap.
///
/// # Errors
/// Those of `rest`, and what signals or other threads raise while an extension measures its objects.
///
/// # Safety
/// The GVL must be held, and there must be no other Ractors.
pub unsafe fn walk(
    ruby: &Ruby,
    page_size: u64,
    mut rest: impl FnMut() -> Result<(), Error>,
) -> Result<HeapWalk, Error> {
    let mut walk = Walk {
        ruby,
        page_size,
        found: HeapWalk::default(),
        pages: Map::default(),
        round: 0,
        deadline: None,
        is_late: true,
        failure: None,
    };
    while walk.is_late {
        (walk.round, walk.is_late, walk.deadline) = (walk.round + 1, false, None);
        // SAFETY: the GVL is held, there are no other Ractors, and the VM calls the closure with the slots of a page.
        each_page(|start, end, stride| unsafe { walk.visit(start, end, stride) })?;
        if let Some(failure) = walk.failure.take() {
            return Err(failure);
        }
        if walk.is_late {
            rest()?;
        }
    }
    let Walk { mut found, pages, round, .. } = walk;
    found.pages = pages.into_values().filter(|&(_, seen)| seen == round).map(|(page, _)| page).collect();
    found.pages.sort_unstable_by_key(|page| page.start);
    Ok(found)
}

/// Calls `visit` with the first slot, the end and the size of the slots of each page, until it returns true.
fn each_page<F: FnMut(usize, usize, usize) -> bool>(visit: F) -> Result<(), Error> {
    unsafe extern "C" fn call<F: FnMut(usize, usize, usize) -> bool>(
        start: *mut c_void,
        end: *mut c_void,
        stride: usize,
        callback: *mut c_void,
    ) -> c_int {
        // After a panic there is no more to see.
        let mut stop = true;
        // SAFETY: the pointer passed below, to what nobody else uses meanwhile.
        let callback = unsafe { &mut *callback.cast::<Callback<F>>() };
        callback.run(|visit| stop = visit(start as usize, end as usize, stride));
        c_int::from(stop)
    }
    let mut callback = Callback::new(visit);
    let data = (&raw mut callback).cast();
    // SAFETY: on a Ruby thread; `call` gets the pointer that it expects, and does not unwind. The function raises only
    // without memory, before any call or between two.
    let done = protect(|| unsafe { rb_objspace_each_objects(call::<F>, data) });
    callback.finish();
    done
}

impl Walk<'_> {
    /// Visits a page, unless it is known. Returns whether to stop.
    ///
    /// # Safety
    /// The GVL must be held, and these be the slots of a page in use.
    unsafe fn visit(&mut self, start: usize, end: usize, stride: usize) -> bool {
        let address = start as u64 / self.page_size * self.page_size;
        if let Some((_, seen)) = self.pages.get_mut(&address) {
            *seen = self.round;
            return false;
        }
        // Each round visits one new page at least, so the walk comes to an end.
        let now = Instant::now();
        let slice = if faults::denied("heap walk slice") { Duration::ZERO } else { SLICE };
        if now > *self.deadline.get_or_insert(now + slice) {
            self.is_late = true;
            return true;
        }
        let mut live = 0;
        for slot in (start..end).step_by(stride.max(1)) {
            // SAFETY: a slot of a page in use. Only an extension's function can start a collection here, and then the
            // object that it measures is on this stack, so the page stays.
            live += u32::from(unsafe { self.visit_slot(slot as VALUE) });
            if self.failure.is_some() {
                return true;
            }
        }
        let slots = ((end - start) / stride.max(1)) as u32;
        let page = HeapPage { start: address, end: address + self.page_size, slot_size: stride as u32, slots, live };
        self.pages.insert(address, (page, self.round));
        false
    }

    /// Visits a slot. Returns whether it has an object.
    ///
    /// # Safety
    /// The GVL must be held, and this be a slot of a page in use.
    unsafe fn visit_slot(&mut self, slot: VALUE) -> bool {
        // SAFETY: every slot begins with a header. The collection was finished before, so what has an object has a live
        // one, or one that was not found to be dead yet.
        unsafe {
            let flags = flags(slot);
            let kind = Type::of_flags(flags);
            match kind {
                Type::NONE | Type::ZOMBIE | Type::MOVED => return false,
                Type::DATA => self.add_data(slot),
                _ => {
                    let size = memsize::of_plain(slot).unwrap_or(0).saturating_sub(memsize::slot_size(slot)) as u64;
                    if imemo_type(slot) == Some(layout::IMEMO_ISEQ) {
                        self.found.code = self.found.code.saturating_add(size);
                    } else if !transient::is_owner(kind, flags) {
                        self.found.object_memory = self.found.object_memory.saturating_add(size);
                    }
                }
            }
        }
        true
    }

    /// # Safety
    /// The GVL must be held, and `object` be a live T_DATA.
    unsafe fn add_data(&mut self, object: VALUE) {
        // SAFETY: as required of the caller.
        let (name, size) = unsafe {
            let name = DataType::of(object).map_or(&b""[..], |data_type| data_type.name().to_bytes());
            match name {
                // Most of that are stacks.
                b"VM/thread" => return self.found.threads.push(data(object) as u64),
                // What the VM has is not an object's.
                b"fiber" | b"VM" => return,
                _ => (name, memsize::of_any(self.ruby, object)),
            }
        };
        match size {
            Err(failure) => self.failure = Some(failure),
            Ok(size) => {
                // SAFETY: it stays alive on this stack while its extension measures it.
                let slot = unsafe { memsize::slot_size(object) };
                let size = size.unwrap_or(0).saturating_sub(slot) as u64;
                let sum = if name.starts_with(b"MemprofilerPprof::") {
                    &mut self.found.profiler
                } else {
                    &mut self.found.object_memory
                };
                // An extension can say anything.
                *sum = sum.saturating_add(size);
            }
        }
    }
}
