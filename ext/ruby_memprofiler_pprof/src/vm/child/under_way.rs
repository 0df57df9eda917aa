//! One copy at a time.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process that has a copy; 0 if none has. In a forked child of the program it is another process.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Exists while there may be a copy.
#[derive(Debug)]
pub struct UnderWay(u32);

impl UnderWay {
    /// None if there is one already. The GVL must be held.
    pub fn begin() -> Option<Self> {
        let this = process::id();
        // Not then_some(): a guard that is made in vain would end the other copy's when dropped.
        (OWNER.swap(this, Ordering::Relaxed) != this).then(|| Self(this))
    }
}

/// Whether there may be a copy of this process. Needs no GVL.
pub fn is_under_way() -> bool {
    OWNER.load(Ordering::Relaxed) == process::id()
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        // After a fork in the middle it may be in use again.
        let _ = OWNER.compare_exchange(self.0, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}
