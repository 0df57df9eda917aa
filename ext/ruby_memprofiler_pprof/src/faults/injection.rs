//! Which fault happens where.

use crate::collector;
use magnus::value::{Opaque, ReprValue};
use magnus::{Ruby, block::Proc};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// What happens at a place.
#[derive(Clone, Copy)]
pub enum Fault {
    /// A panic.
    Panic,
    /// What is requested there appears to be missing, as long as the fault is injected.
    Denial,
    /// An allocation on Ruby's heap.
    Allocation,
    /// A lock that other threads may hold.
    Lock,
    /// A NoMemoryError, as the VM raises it.
    Memory,
    /// A check for interrupts.
    Interrupts,
    /// A pause of 0.3 seconds.
    Sleep,
    /// A SIGKILL.
    Kill,
    /// Sleep without end.
    Hang,
    /// Ruby code.
    Call(Opaque<Proc>),
}

/// The injected faults. Also locked in hooks, but only for moments.
static FAULTS: Mutex<Vec<(String, Fault)>> = Mutex::new(Vec::new());

fn faults() -> MutexGuard<'static, Vec<(String, Fault)>> {
    FAULTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Injects `fault` at `place`: a denial permanently, everything else for once.
pub fn inject(place: String, fault: Fault) {
    faults().push((place, fault));
}

/// Removes all faults.
pub fn clear() {
    faults().clear();
}

/// Whether something is to be treated as missing.
pub fn denied(what: &str) -> bool {
    faults().iter().any(|(place, fault)| place == what && matches!(fault, Fault::Denial))
}

/// Allocations of at least this many bytes fail.
static ALLOCATION_LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Lets allocations of at least `bytes` fail, or none.
pub fn set_allocation_limit(bytes: Option<usize>) {
    ALLOCATION_LIMIT.store(bytes.unwrap_or(usize::MAX), Ordering::Relaxed);
}

/// Whether an allocation of so many bytes fails.
pub fn lacks_memory(bytes: usize) -> bool {
    bytes >= ALLOCATION_LIMIT.load(Ordering::Relaxed)
}

/// The time of the system's clock; before 1970 while "clock" is denied.
pub fn time(now: SystemTime) -> SystemTime {
    if denied("clock") { SystemTime::UNIX_EPOCH - Duration::from_secs(86_400) } else { now }
}

/// A place at which a fault can be injected.
pub fn point(place: &'static str) {
    let fault = {
        let mut faults = faults();
        let index = faults.iter().position(|(other, fault)| other == place && !matches!(fault, Fault::Denial));
        index.map(|index| faults.remove(index).1)
    };
    if let Some(fault) = fault {
        commit(fault, place);
    }
}

#[expect(clippy::panic, reason = "a panic is one of the faults")]
fn commit(fault: Fault, place: &str) {
    match fault {
        Fault::Panic => panic!("injected at {place}"),
        Fault::Denial => {}
        // SAFETY: it is not allowed here; the trap has to detect that.
        Fault::Allocation => drop(unsafe { rb_sys::rb_ary_new_capa(0) }),
        Fault::Lock => drop(collector::hooked()),
        // SAFETY: the VM's own jump, which the caller has to expect.
        Fault::Memory => unsafe { rb_sys::rb_memerror() },
        // SAFETY: as for an allocation.
        Fault::Interrupts => unsafe { rb_sys::rb_thread_check_ints() },
        Fault::Sleep => std::thread::sleep(Duration::from_millis(300)),
        // SAFETY: a signal to the process itself, which it does not survive.
        Fault::Kill => drop(unsafe { libc::kill(libc::getpid(), libc::SIGKILL) }),
        Fault::Hang => loop {
            std::thread::sleep(Duration::from_secs(3600));
        },
        Fault::Call(block) => {
            let Ok(ruby) = Ruby::get() else { return };
            let outcome = ruby.get_inner(block).call::<_, magnus::Value>(());
            if let Err(error) = outcome {
                eprintln!("the block injected at {place} failed: {error}");
            }
        }
    }
}

/// Keeps `block` alive forever.
pub fn call(ruby: &Ruby, block: Proc) -> Fault {
    ruby.gc_register_mark_object(block.as_value());
    Fault::Call(Opaque::from(block))
}
