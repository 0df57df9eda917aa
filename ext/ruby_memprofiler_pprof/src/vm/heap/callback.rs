//! Closures that C functions call.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A closure for C, which a panic must not unwind through.
pub struct Callback<F> {
    call: F,
    panic: Option<Box<dyn Any + Send>>,
}

impl<F> Callback<F> {
    /// For `call`.
    pub fn new(call: F) -> Self {
        Self { call, panic: None }
    }

    /// Runs `body` with the closure, unless it has panicked before.
    #[inline]
    pub fn run(&mut self, body: impl FnOnce(&mut F)) {
        if self.panic.is_none() {
            self.panic = catch_unwind(AssertUnwindSafe(|| body(&mut self.call))).err();
        }
    }

    /// Panics if the closure did.
    pub fn finish(self) {
        if let Some(panic) = self.panic {
            resume_unwind(panic);
        }
    }
}
