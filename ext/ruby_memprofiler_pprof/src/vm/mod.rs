//! The only module that knows CRuby's internals.

pub mod activity;
pub mod bare_names;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux can copy a process"))]
pub mod child;
pub mod class_names;
pub mod clock;
pub mod cpu_clock;
#[cfg(target_os = "linux")]
pub mod cpu_timer;
#[cfg(not(target_os = "linux"))]
#[path = "no_cpu_timer.rs"]
pub mod cpu_timer;
pub mod end;
pub mod errno;
pub mod event_flags;
pub mod frames;
pub mod gc;
pub mod gvl;
pub mod heap;
pub mod hooks;
pub mod iseq;
pub mod jit;
pub mod keeper;
pub mod labels;
pub mod lossy;
pub mod machine_stack;
pub mod mark_bits;
pub mod memory;
pub mod memsize;
pub mod mutex;
pub mod names;
pub mod object;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only timers note places"))]
pub mod place;
pub mod position;
pub mod profile_frames;
mod protect;
pub mod quirks;
pub mod ractor;
pub mod resident;
pub mod safepoint;
pub mod seen_frame;
pub mod selftest;
pub mod signals;
pub mod single_object;
pub mod span;
mod symbols;
pub mod thread_events;
pub mod threads;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only timers tick"))]
pub mod ticks;
pub mod time_stamp;
mod typed_data;
mod variables;

pub use protect::protect;
pub use ruby_layout::layout;

/// The Ruby version that this library was built for; the loader refuses any other minor version.
pub const RUBY_MAJOR: u32 = parse(env!("RUBY_MAJOR"));
/// See [`RUBY_MAJOR`].
pub const RUBY_MINOR: u32 = parse(env!("RUBY_MINOR"));

const fn parse(digits: &str) -> u32 {
    let (digits, mut number, mut i) = (digits.as_bytes(), 0, 0);
    while i < digits.len() {
        number = number * 10 + (digits[i] - b'0') as u32;
        i += 1;
    }
    number
}
