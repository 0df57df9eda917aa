//! Aborts the process, with the hook's name, when a hook does what it must not: allocate on Ruby's heap, let the VM run
//! Ruby code, wait for a lock, or panic.

use crate::vm::safepoint;
use magnus::Ruby;
use magnus::rb_sys::AsRawValue;
use rb_sys::VALUE;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

thread_local! {
    /// The hook that this thread is running.
    static RUNNING: Cell<Option<&'static str>> = const { Cell::new(None) };
}

static ARMED: AtomicBool = AtomicBool::new(false);
/// How many hooks ran while the traps were armed.
static GUARDED: AtomicU64 = AtomicU64::new(0);
/// How many of the postponed jobs ran, all of them outside hooks.
static POSTPONED: AtomicU64 = AtomicU64::new(0);
/// The symbol :total_allocated_objects, an immediate value.
static TOTAL: AtomicU64 = AtomicU64::new(0);

/// Arms the traps.
pub fn arm(ruby: &Ruby) {
    TOTAL.store(ruby.to_symbol("total_allocated_objects").as_raw(), Ordering::Relaxed);
    // The first call makes symbols.
    allocated();
    ARMED.store(true, Ordering::Relaxed);
}

/// How many hooks ran while armed, and how many of their postponed jobs.
pub fn counts() -> (u64, u64) {
    (GUARDED.load(Ordering::Relaxed), POSTPONED.load(Ordering::Relaxed))
}

/// Exists while a hook runs.
pub struct InHook {
    hook: &'static str,
    /// The number of objects allocated before, if armed.
    before: Option<usize>,
}

impl InHook {
    /// Sets the traps.
    pub fn enter(hook: &'static str) -> Self {
        if !ARMED.load(Ordering::Relaxed) {
            return Self { hook, before: None };
        }
        if let Some(outer) = RUNNING.replace(Some(hook)) {
            spring(outer, &format!("ran the hook {hook}"));
        }
        GUARDED.fetch_add(1, Ordering::Relaxed);
        safepoint::request(postponed);
        Self { hook, before: Some(allocated()) }
    }
}

impl Drop for InHook {
    fn drop(&mut self) {
        let Some(before) = self.before else { return };
        let count = allocated() - before;
        if count > 0 {
            spring(self.hook, &format!("allocated {count} objects"));
        }
        RUNNING.set(None);
    }
}

/// Must be called before anything that may wait for another thread.
pub fn blocks(what: &'static str) {
    if let Some(hook) = RUNNING.get() {
        spring(hook, &format!("waited for the lock of the {what}"));
    }
}

/// Must be called after catching a panic.
pub fn panicked(place: &'static str) {
    if ARMED.load(Ordering::Relaxed) {
        spring(place, "panicked");
    }
}

unsafe extern "C" fn postponed(_: *mut c_void) {
    POSTPONED.fetch_add(1, Ordering::Relaxed);
    if let Some(hook) = RUNNING.get() {
        spring(hook, "let the VM run other code");
    }
}

fn allocated() -> usize {
    // SAFETY: asked for a single number, the function allocates nothing.
    unsafe { rb_sys::rb_gc_stat(TOTAL.load(Ordering::Relaxed) as VALUE) as usize }
}

fn spring(hook: &str, deed: &str) -> ! {
    eprintln!("trap: the hook {hook} {deed}");
    std::process::abort()
}
