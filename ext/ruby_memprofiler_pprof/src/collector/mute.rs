//! Threads whose allocations are not the program's.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Execution contexts in which samples are dropped. An array rather than a collection behind a lock, because hooks
/// read it; when it is full, further contexts are simply not muted.
static MUTED: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Drops samples in one context for as long as it lives.
#[derive(Debug)]
pub struct Mute(Option<usize>);

impl Mute {
    /// Mutes `context`; null means a context that cannot be told, and mutes nothing.
    pub fn new(context: *const u8) -> Self {
        let free = MUTED.iter().position(|slot| {
            !context.is_null()
                && slot.compare_exchange(0, context as usize, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        });
        COUNT.fetch_add(usize::from(free.is_some()), Ordering::Relaxed);
        Self(free)
    }
}

impl Drop for Mute {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            MUTED[slot].store(0, Ordering::Relaxed);
            COUNT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Whether `context` is muted.
pub fn is_muted(context: *const u8) -> bool {
    COUNT.load(Ordering::Relaxed) > 0 && MUTED.iter().any(|slot| slot.load(Ordering::Relaxed) == context as usize)
}
