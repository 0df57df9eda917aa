//! Whose allocations a collector samples.

use crate::vm::threads;
use magnus::Error;
use rb_sys::VALUE;

/// The `only:` of `start`. While the collector runs, it keeps the Thread or Fiber alive and in place: otherwise another
/// one might get its address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Only {
    /// All allocations.
    #[default]
    All,
    /// Those of one thread, in any of its fibers.
    Thread(VALUE),
    /// Those of one fiber.
    Fiber {
        /// Its execution context, which is part of it.
        context: usize,
        object: VALUE,
    },
}

impl Only {
    /// Those of the running thread.
    pub fn this_thread() -> Self {
        Self::Thread(threads::current())
    }

    /// Those of the running fiber; None if this Ruby's layout is unknown. Fails with what Ruby raises.
    pub fn this_fiber() -> Result<Option<Self>, Error> {
        let object = threads::current_fiber()?;
        let context = threads::current_context();
        Ok((!context.is_null()).then_some(Self::Fiber { context: context as usize, object }))
    }

    /// The Thread or Fiber.
    pub fn object(self) -> Option<VALUE> {
        match self {
            Self::All => None,
            Self::Thread(object) | Self::Fiber { object, .. } => Some(object),
        }
    }

    /// The symbol that users know it by.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::All => None,
            Self::Thread(_) => Some("thread"),
            Self::Fiber { .. } => Some("fiber"),
        }
    }

    /// Whether to sample allocations in `context` now.
    #[inline]
    pub fn includes(self, context: *const u8) -> bool {
        match self {
            Self::All => true,
            Self::Thread(thread) => threads::current() == thread,
            Self::Fiber { context: own, .. } => context as usize == own,
        }
    }
}
