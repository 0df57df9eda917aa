//! Collects garbage before anything is visited.

use super::{Flush, FlushFailure};
use crate::vm::machine_stack::overwrite_remains;
use crate::vm::{gc, threads};
use magnus::Value;
use magnus::rb_sys::FromRawValue;

impl Flush<'_> {
    /// Collects garbage. Threads that have ended are part of it: stacks have their names from now on.
    pub(super) fn collect_garbage(&mut self) -> Result<(), FlushFailure> {
        self.name_threads()?;
        overwrite_remains();
        self.pace.mute.lift(|| gc::start(self.ruby))?;
        self.settle()?;
        self.check()
    }

    /// Not inlined: what it leaves on the stack is overwritten.
    #[inline(never)]
    fn name_threads(&mut self) -> Result<(), FlushFailure> {
        let state = &self.collector.state;
        let mut next = 0;
        while let Some((number, thread)) = state.with(|state| state.sites.stacks.next_thread(next)) {
            // SAFETY: the stacks have kept the Thread alive until now, and it is on the machine stack.
            let name = self.pace.mute.lift(|| threads::name(unsafe { Value::from_raw(thread) }))?;
            self.check()?;
            state.with(|state| state.sites.stacks.name_thread(thread, name.as_deref()));
            self.rest()?;
            next = number + 1;
        }
        Ok(())
    }
}
