//! The reference graph of a heap, and what it says about who holds what.

#![allow(clippy::unwrap_used, clippy::panic, reason = "in a test a panic is a failure")]

mod accumulation;
mod answers;
mod building;
mod dominators;
mod heap;
mod held_twice;
mod holders;
mod largest;
mod profiles;
mod program;
mod search;
