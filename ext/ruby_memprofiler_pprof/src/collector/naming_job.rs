//! Naming without a flush. The VM cannot free what samples refer to, such as the code of an `eval` or an anonymous
//! class; once they are known by name it can. Finding names takes Ruby's own functions, so this runs at safe points,
//! for a moment at a time. The next sample requests the next moment.

use super::hooked;
use super::mute::Mute;
use super::resolve::Owner;
use super::state::{Progress, State};
use super::{Collector, Phase};
use crate::vm::{ractor, safepoint, threads};
use magnus::Error;
use std::ffi::c_void;
use std::time::{Duration, Instant};

/// How long it may take at a time.
const MOMENT: Duration = Duration::from_micros(500);

/// The job. It calls no method: a pending exception of this thread would be raised there, and be lost.
///
/// # Safety
/// Must run at a safe point of a Ruby thread.
pub unsafe extern "C" fn run(_: *mut c_void) {
    if !ractor::is_main() || !safepoint::has_room() {
        return;
    }
    let mute = Mute::new(threads::current_context());
    hooked::each(|collector| collector.guarded("naming job", || collector.name_for_a_moment(&mute)));
}

impl Collector {
    fn name_for_a_moment(&self, mute: &Mute) {
        if self.phase() == Phase::Running {
            // SAFETY: the GVL is held; a running collector is anchored. If there is no memory, the next sample tries
            // again.
            let _ = unsafe { self.make_keepers(self.holder.get()) };
        }
        if self.state.with(State::begin_naming) && self.name_until(mute, Instant::now() + MOMENT).is_err() {
            self.state.with(State::abandon_naming);
        }
    }

    fn name_until(&self, mute: &Mute, deadline: Instant) -> Result<(), Error> {
        while self.failure().is_none() && Instant::now() < deadline {
            match self.state.with(State::name_some) {
                Progress::Done => break,
                Progress::More => {}
                Progress::Unnamed(unnamed) => self.name(mute, unnamed)?,
            }
        }
        Ok(())
    }
}
