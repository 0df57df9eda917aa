//! The parts of a heap profiler that know no Ruby: which allocations are sampled, how stacks and live samples are
//! stored, and how a profile is built and encoded.

mod address_index;
pub mod encode;
pub mod hash;
pub mod interner;
pub mod live_set;
pub mod name_table;
pub mod pprof_message;
pub mod profile;
pub mod rates;
pub mod sampler;
pub mod stack_tree;
pub mod tally;
