//! The VM's variable `ruby_vm_event_flags`: the events that hooks are called for.
//!
//! The VM computes it when hooks are added or removed, which takes a safe point. But from Ruby 3.4 on an allocation
//! looks at nothing else before it calls hooks (gc.c `rb_gc_event_hook_required_p`), so a hook can stay in the VM's
//! list and be switched on and off by one bit, at any moment, by any thread, while compiled code goes on.
//!
//! The variable is not exported. It is found by what happens to it when a hook is added and removed, and used only if
//! its bit has been seen to switch a hook.

use super::hooks::{self, FREEOBJ, NEWOBJ, TraceArg};
use super::ractor::MainRactor;
use super::{protect, variables};
use crate::faults;
use magnus::Error;
use rb_sys::{VALUE, rb_event_flag_t};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a hook that is switched subscribes to. FREEOBJ is taken out of the variable at once, as long as nobody else
/// wants it: if it is there again, the VM has computed the variable anew, and somebody else may want either of the two.
pub const SWITCHED: rb_event_flag_t = NEWOBJ | FREEOBJ;

/// How often a variable is tried that does what it should, but does not switch hooks.
const ATTEMPTS: u32 = 3;

static VARIABLE: OnceLock<&'static AtomicU32> = OnceLock::new();

/// The VM's variable.
#[derive(Debug, Clone, Copy)]
pub struct EventFlags(&'static AtomicU32);

impl EventFlags {
    /// The variable, if it is known already. Safe on any thread.
    pub fn known() -> Option<Self> {
        VARIABLE.get().map(|&variable| Self(variable))
    }

    /// Searches for the variable if it is not known, which adds and removes a hook. None if that failed: another hook
    /// may be in the way. There must be no other Ractors.
    pub fn find(main: MainRactor) -> Option<Self> {
        static FAILED: AtomicU32 = AtomicU32::new(0);
        if Self::known().is_none() && FAILED.load(Ordering::Relaxed) < ATTEMPTS && !faults::denied("event flags") {
            // Without memory for a hook: another time.
            match search(main) {
                Ok(Some((variable, true))) => drop(VARIABLE.set(variable)),
                Ok(Some((_, false))) => drop(FAILED.fetch_add(1, Ordering::Relaxed)),
                Ok(None) | Err(_) => {}
            }
        }
        Self::known()
    }

    /// Whether no hook wants the events of [`SWITCHED`], as far as the VM knows, and none is switched on.
    pub fn are_clear(self) -> bool {
        self.0.load(Ordering::SeqCst) & SWITCHED == 0
    }

    /// Whether hooks were added or removed since the last [`claim`](Self::claim). Safe on any thread.
    pub fn are_changed(self) -> bool {
        self.0.load(Ordering::SeqCst) & FREEOBJ != 0
    }

    /// Takes the events of [`SWITCHED`] over from the VM, once a hook for them was added. Nobody else may want them.
    /// The hook is off.
    pub fn claim(self) {
        self.0.fetch_and(!SWITCHED, Ordering::SeqCst);
    }

    /// Switches the hook on or off. Does nothing, and returns false, if hooks [were added or
    /// removed](Self::are_changed). Safe on any thread, and in hooks.
    pub fn switch(self, on: bool) -> bool {
        let switched = |flags: u32| {
            let others = flags & !NEWOBJ;
            (flags & FREEOBJ == 0).then_some(if on { others | NEWOBJ } else { others })
        };
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, switched).is_ok()
    }
}

/// The variable, if there is only one that may be it, and whether it switches hooks.
fn search(main: MainRactor) -> Result<Option<(&'static AtomicU32, bool)>, Error> {
    let mut candidates: Vec<(*mut u32, u32)> = words().map(|word| (word, value(word))).collect();
    candidates.retain(|&(_, before)| before & SWITCHED == 0);
    with_probe(main, || candidates.retain(|&(word, before)| value(word) == before | SWITCHED))?;
    candidates.retain(|&(word, before)| value(word) == before);
    let &[(word, _)] = candidates.as_slice() else { return Ok(None) };
    // SAFETY: an aligned word of a segment that stays loaded. The VM has just written to it, always as a whole.
    let variable = unsafe { AtomicU32::from_ptr(word) };
    let mut works = Ok(false);
    with_probe(main, || works = switches_hooks(EventFlags(variable)))?;
    Ok(Some((variable, works?)))
}

/// The addresses of the words of the VM's global variables.
fn words() -> impl Iterator<Item = *mut u32> {
    variables::segments().into_iter().flat_map(|segment| {
        let first = segment.start.next_multiple_of(align_of::<u32>());
        (first..segment.end.saturating_sub(size_of::<u32>() - 1)).step_by(size_of::<u32>()).map(|word| word as *mut u32)
    })
}

fn value(word: *mut u32) -> u32 {
    // SAFETY: an aligned word of a segment that stays loaded, and can be read. If another thread writes to it at this
    // moment, it is not the variable, which is only written to with the GVL, and any value will do.
    unsafe { word.read_volatile() }
}

/// Whether allocations call the probe's hook exactly when it is switched on.
fn switches_hooks(flags: EventFlags) -> Result<bool, Error> {
    flags.claim();
    let off = calls_of_an_allocation()?;
    flags.switch(true);
    let on = calls_of_an_allocation()?;
    flags.switch(false);
    Ok((off, on) == (0, 1))
}

/// How often the probe was called.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// Of the probe; a small integer to the VM.
const PROBE: VALUE = 1;

/// Does `work` while a hook is on that counts allocations.
fn with_probe(main: MainRactor, work: impl FnOnce()) -> Result<(), Error> {
    unsafe extern "C" fn count(_: VALUE, arg: *const TraceArg) {
        // SAFETY: the VM passes a valid argument.
        if unsafe { (*arg).event } == NEWOBJ {
            CALLS.fetch_add(1, Ordering::Relaxed);
        }
    }
    // SAFETY: the data points to nothing.
    unsafe { hooks::add(main, count, SWITCHED, PROBE) }?;
    work();
    hooks::remove(main, count, PROBE);
    Ok(())
}

fn calls_of_an_allocation() -> Result<u32, Error> {
    let before = CALLS.load(Ordering::Relaxed);
    // SAFETY: the GVL is held.
    protect(|| unsafe { rb_sys::rb_ary_new() })?;
    Ok(CALLS.load(Ordering::Relaxed) - before)
}
