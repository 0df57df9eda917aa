//! Threads whose allocations are not the program's.

use crate::faults;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Execution contexts whose samples are dropped. An array rather than a collection behind a lock, because hooks read
/// it; when it is full, further contexts are simply not muted.
static MUTED: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Marks the slot of a context whose mute is lifted; the slot then matches no context's address.
const LIFTED: usize = 1;

/// Drops samples in one context as long as it lives.
#[derive(Debug)]
pub struct Mute(Option<Slot>);

#[derive(Debug, Clone, Copy)]
struct Slot {
    number: usize,
    context: usize,
}

impl Mute {
    /// Mutes `context`. Null stands for an unknown context, and mutes nothing.
    pub fn new(context: *const u8) -> Self {
        let context = context as usize;
        let free = (0..MUTED.len()).find(|&number| context != 0 && Slot { number, context: 0 }.replace(0, context));
        COUNT.fetch_add(usize::from(free.is_some()), Ordering::Relaxed);
        Self(free.map(|number| Slot { number, context }))
    }

    /// Runs `body`, in which the VM may run signal handlers and finalizers in this context: their allocations are the
    /// program's.
    pub fn lift<R>(&self, body: impl FnOnce() -> R) -> R {
        let _lifted = self.0.map(Lifted::new);
        faults::point("lifted mute");
        body()
    }
}

/// The slot of a mute that is lifted until this is dropped.
struct Lifted(Slot);

impl Lifted {
    fn new(slot: Slot) -> Self {
        slot.replace(slot.context, slot.context | LIFTED);
        Self(slot)
    }
}

impl Drop for Lifted {
    fn drop(&mut self) {
        let Self(slot) = self;
        slot.replace(slot.context | LIFTED, slot.context);
    }
}

impl Drop for Mute {
    fn drop(&mut self) {
        // Unless a fork has emptied the slot, which may belong to another context by now.
        if self.0.is_some_and(|slot| slot.replace(slot.context, 0)) {
            COUNT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Slot {
    fn replace(self, from: usize, to: usize) -> bool {
        MUTED[self.number].compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Whether `context` is muted.
pub fn is_muted(context: *const u8) -> bool {
    COUNT.load(Ordering::Relaxed) > 0 && MUTED.iter().any(|slot| slot.load(Ordering::Relaxed) == context as usize)
}

/// For a forked child, where only `context` survives: the other threads are gone, and new ones may reuse their
/// addresses.
pub fn forget_others(context: *const u8) {
    for slot in &MUTED {
        let muted = slot.load(Ordering::Relaxed);
        if muted != 0 && muted & !LIFTED != context as usize {
            slot.store(0, Ordering::Relaxed);
            COUNT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
