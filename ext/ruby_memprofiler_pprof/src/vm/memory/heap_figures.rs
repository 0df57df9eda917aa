//! What the garbage collector says about its heap without a walk.

use super::super::memsize;
use magnus::{Error, RHash, Ruby, prelude::*};

/// In bytes; None where this garbage collector does not say it.
#[derive(Debug, Default, Clone, Copy)]
pub struct HeapFigures {
    /// All pages.
    pub pages: Option<u64>,
    /// The slots of objects that have not been swept yet, dead or alive.
    pub objects: Option<u64>,
    /// Whether that is exact.
    pub exact: bool,
    /// The size of a page.
    pub page_size: Option<u64>,
}

impl HeapFigures {
    /// Asks for them. May run Ruby code.
    ///
    /// # Errors
    /// What signals or other threads raise meanwhile.
    pub fn read(ruby: &Ruby) -> Result<Self, Error> {
        let statistic = |name: &'static str| ruby.gc_stat(name).ok().map(|number| number as u64);
        let page_size = page_size(ruby);
        let pages = statistic("heap_allocated_pages").zip(page_size).map(|(pages, size)| pages * size);
        let live = statistic("heap_live_slots");
        let figures = Self { pages, page_size, ..Self::default() };
        if cfg!(not(ruby_gte_3_2)) {
            let objects = live.map(|slots| slots * memsize::SMALLEST_SLOT as u64);
            return Ok(Self { objects, exact: true, ..figures });
        }
        let Some(heaps) = heaps(ruby)? else { return Ok(figures) };
        let sum = |product: fn(&Heap) -> Option<u64>| heaps.iter().map(product).sum::<Option<u64>>();
        if let Some(objects) = sum(|heap| Some(heap.objects? * heap.slot_size)) {
            return Ok(Self { objects: Some(objects), exact: true, ..figures });
        }
        let slots = sum(|heap| Some(heap.slots)).unwrap_or(0);
        let bytes = sum(|heap| Some(heap.slots * heap.slot_size)).unwrap_or(0);
        let average = bytes as f64 / slots.max(1) as f64;
        Ok(Self { objects: live.map(|live| (live as f64 * average) as u64), ..figures })
    }
}

/// Slots of one size.
#[derive(Debug)]
struct Heap {
    slot_size: u64,
    slots: u64,
    objects: Option<u64>,
}

/// From `GC.stat_heap`; None if this garbage collector has other keys.
fn heaps(ruby: &Ruby) -> Result<Option<Vec<Heap>>, Error> {
    let all: RHash = match ruby.module_gc().funcall("stat_heap", ()) {
        Ok(all) => all,
        Err(error) if is_missing(ruby, &error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut heaps = Vec::new();
    for number in 0..all.len() {
        let Some(heap) = all.get(number).and_then(RHash::from_value) else { return Ok(None) };
        let read = |key: &str| heap.get(ruby.to_symbol(key)).and_then(|value| u64::try_convert(value).ok());
        let Some((slot_size, slots)) = read("slot_size").zip(read("heap_eden_slots")) else { return Ok(None) };
        let objects = read("total_allocated_objects").zip(read("total_freed_objects"));
        let objects = objects.map(|(allocated, freed)| allocated.saturating_sub(freed));
        heaps.push(Heap { slot_size, slots, objects });
    }
    Ok(Some(heaps))
}

/// Whether it means that this Ruby lacks the method, as opposed to what another thread may raise.
fn is_missing(ruby: &Ruby, error: &Error) -> bool {
    error.is_kind_of(ruby.exception_no_method_error()) || error.is_kind_of(ruby.exception_not_imp_error())
}

fn page_size(ruby: &Ruby) -> Option<u64> {
    let constants: RHash = ruby.module_gc().const_get("INTERNAL_CONSTANTS").ok()?;
    constants.fetch(ruby.to_symbol("HEAP_PAGE_SIZE")).ok()
}
