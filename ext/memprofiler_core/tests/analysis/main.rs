//! Profiles read, combined, added up and written: by way of the bytes, as users of the library see them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "in a test a panic is a failure")]

mod combine;
mod decode;
mod expansion;
mod flamegraph;
mod interrupts;
mod maker;
mod shapes;
mod totals;
mod uninterrupted;
