//! The parts of a heap profiler that know no Ruby.
//!
//! While the program runs: which allocations are sampled ([`reservoir`]), who is still to be told of them ([`sums`],
//! [`readers`]), and where they were made ([`stack_tree`]). Afterwards: a [`profile`] in memory, which is read and
//! written as [`pprof`], and what it says ([`analysis`]).

#![forbid(unsafe_code)]

pub mod analysis;
pub mod hash;
pub mod id_index;
pub mod interner;
pub mod interrupt;
pub mod labels;
pub mod name_table;
pub mod pprof;
pub mod profile;
pub mod readers;
pub mod reservoir;
pub mod sparse_array;
pub mod stack_tree;
pub mod sums;
pub mod table;
