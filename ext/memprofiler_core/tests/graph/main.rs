//! The reference graph of a heap, and what it says about who holds what.

mod building;
mod dominators;
mod heap;
mod search;
