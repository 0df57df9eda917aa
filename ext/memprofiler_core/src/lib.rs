//! The parts of a heap profiler that know no Ruby: which allocations are sampled, how stacks and live samples are
//! stored, how a profile is built and encoded, and how profiles are read, combined and added up.

#![forbid(unsafe_code)]

mod address_index;
pub mod analysis;
pub mod encode;
mod field_writer;
pub mod hash;
pub mod id_index;
pub mod index_map;
pub mod interner;
pub mod labels;
pub mod live_set;
pub mod name_table;
pub mod pprof_message;
pub mod profile;
pub mod rates;
pub mod readers;
pub mod sampler;
pub mod stack_tree;
pub mod sums;
pub mod table;
pub mod tally;
