//! The processor's time-stamp counter. The system's clock reads it, too, but first waits until the processor has done all
//! that came before.

use super::clock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The file that names the kernel's clock, and the name of one that is nothing but the counter.
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const COUNTER: &[u8] = b"tsc\n";

/// Whether the kernel uses the counter as its clock: then it is the same for all processors, and counts at a steady
/// pace.
static TRUSTED: AtomicBool = AtomicBool::new(false);

/// Asks the kernel whether it uses the counter. Not for hooks.
pub fn ask_kernel() {
    let trusted = cfg!(target_arch = "x86_64") && std::fs::read(CLOCK_SOURCE).is_ok_and(|name| name == COUNTER);
    TRUSTED.store(trusted, Ordering::Relaxed);
}

/// What the counter says; what the system's clock says, in nanoseconds, where the kernel does not use it or was not
/// asked. Safe in hooks.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if TRUSTED.load(Ordering::Relaxed) {
        // SAFETY: each x86-64 processor has it. If this process were not allowed to read it, it could not read the
        // kernel's clock either, as Ruby does all the time: that reads the counter in user mode.
        return unsafe { std::arch::x86_64::_rdtsc() };
    }
    clock::monotonic()
}
