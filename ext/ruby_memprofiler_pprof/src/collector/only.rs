//! Whose allocations a collector samples.

use crate::vm::threads;
use rb_sys::VALUE;

/// The `only:` of `start`. Addresses are compared, never dereferenced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Only {
    /// All allocations.
    #[default]
    All,
    /// Those of one thread, in any of its fibers.
    Thread(VALUE),
    /// Those of one fiber.
    Fiber(usize),
}

impl Only {
    /// Those of the running thread.
    pub fn this_thread() -> Self {
        Self::Thread(threads::current())
    }

    /// Those of the running fiber; None if this Ruby's layout is unknown.
    pub fn this_fiber() -> Option<Self> {
        let context = threads::current_context();
        (!context.is_null()).then_some(Self::Fiber(context as usize))
    }

    /// The symbol that users know it by.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::All => None,
            Self::Thread(_) => Some("thread"),
            Self::Fiber(_) => Some("fiber"),
        }
    }

    /// Whether to sample allocations in `context` now.
    #[inline]
    pub fn includes(self, context: *const u8) -> bool {
        match self {
            Self::All => true,
            Self::Thread(thread) => threads::current() == thread,
            Self::Fiber(fiber) => context as usize == fiber,
        }
    }
}
