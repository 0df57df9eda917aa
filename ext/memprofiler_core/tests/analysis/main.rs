//! Reads, combines, sums and writes profiles through their bytes, as users of the library do.

#![allow(clippy::unwrap_used, clippy::panic, reason = "in a test a panic is a failure")]

mod combine;
mod decode;
mod differences;
mod expansion;
mod flamegraph;
mod interrupts;
mod maker;
mod shapes;
mod ticks;
mod totals;
mod uninterrupted;
mod windows;
