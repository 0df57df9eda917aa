//! Lets another thread cancel long work.

use std::fmt::{Display, Formatter};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How many steps of a loop pass between two checks: about 50 microseconds.
const STRIDE: usize = 1 << 12;

/// The work was cancelled before it finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

impl Display for Interrupted {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// A flag that long work checks and another thread sets.
#[derive(Debug, Default)]
pub struct Interrupt {
    struck: AtomicBool,
    noticed: AtomicBool,
    not_before: Option<Instant>,
}

impl Interrupt {
    /// An interrupt that takes effect only after `patience`.
    pub fn after(patience: Duration) -> Self {
        Self { not_before: Some(Instant::now() + patience), ..Self::default() }
    }

    /// Asks the work to stop soon. Neither waits nor allocates.
    pub fn strike(&self) {
        self.struck.store(true, Ordering::Relaxed);
    }

    /// Whether work has stopped because of it.
    pub fn was_noticed(&self) -> bool {
        self.noticed.load(Ordering::Relaxed)
    }

    /// Fails if the work is to stop.
    #[cold]
    #[inline(never)]
    pub fn check(&self) -> Result<(), Interrupted> {
        if !self.struck.load(Ordering::Relaxed) || self.not_before.is_some_and(|time| Instant::now() < time) {
            return Ok(());
        }
        self.noticed.store(true, Ordering::Relaxed);
        Err(Interrupted)
    }

    /// Like [`check`](Self::check), for step `step` of a loop: checks only every few thousand steps.
    #[inline(always)]
    pub fn at(&self, step: usize) -> Result<(), Interrupted> {
        if step % STRIDE == 0 { self.check() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_ends_soon_after_an_interrupt() {
        let interrupt = Interrupt::default();
        let steps = (0..).try_for_each(|step| {
            if step == 10 {
                interrupt.strike();
            }
            interrupt.at(step).map_err(|Interrupted| step)
        });
        assert_eq!((steps, interrupt.was_noticed()), (Err(STRIDE), true));
    }

    #[test]
    fn it_takes_effect_only_after_its_patience() {
        let interrupt = Interrupt::after(Duration::from_secs(3600));
        interrupt.strike();
        assert_eq!((interrupt.check(), interrupt.was_noticed()), (Ok(()), false));
        let interrupt = Interrupt::after(Duration::ZERO);
        assert_eq!(interrupt.check(), Ok(()));
        interrupt.strike();
        assert_eq!((interrupt.check(), interrupt.was_noticed()), (Err(Interrupted), true));
    }
}
