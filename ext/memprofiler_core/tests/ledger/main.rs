//! Where all of a process's memory is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "in a test a panic is a failure")]

mod estimates;
mod glibc;
mod held_slots;
mod limits;
mod lines;
mod lists;
mod process;
mod surveys;
