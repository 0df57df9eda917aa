//! The parts of a heap profiler that know nothing about Ruby.
//!
//! While the program runs: which allocations are sampled ([`reservoir`], [`windows`]), which readers still have to see
//! them ([`sums`], [`readers`]), where they were made ([`stack_tree`]) and, for some, in which span ([`exemplars`]);
//! what was alive when there was the most memory ([`peak`]), and whether memory runs short ([`watch`]).
//! Afterwards: a [`profile`] in memory, its file format ([`pprof`]), and what it shows ([`analysis`]). On request: what
//! holds the sampled objects ([`graph`]).

#![forbid(unsafe_code)]

pub mod analysis;
mod cgroup;
pub mod exemplars;
pub mod graph;
pub mod hash;
pub mod headroom;
pub mod id_index;
pub mod interner;
pub mod interrupt;
pub mod labels;
pub mod ledger;
pub mod linux;
pub mod name_table;
pub mod peak;
pub mod pprof;
pub mod profile;
pub mod readers;
pub mod reservoir;
pub mod sparse_array;
pub mod stack_tree;
pub mod stratum;
pub mod sums;
pub mod table;
pub mod watch;
pub mod window_group;
pub mod windows;
