//! Profiles that were written before, by this gem or by others: read, combined, filtered, added up, written again.
//!
//! Nothing here recurses over what was read, and memory and time are proportional to its size.

mod aggregate;
mod builder;
mod combine;
mod decode;
mod estimate;
mod filter;
mod flamegraph;
mod folded;
mod gem;
mod grouping;
mod gunzip;
mod ids;
mod outermost;
mod profile;
mod records;
mod row_sums;
mod samples;
mod speedscope;
mod stack_reader;
mod stack_table;
mod strings;
mod tables;
mod translation;
mod tree;
mod wire_fields;
mod write;

pub use aggregate::{Site, top};
pub use combine::{Incompatible, Merger, diff, merge};
pub use decode::{DecodeError, decode};
pub use estimate::{Estimator, Sum};
pub use filter::FrameName;
pub use flamegraph::flamegraph;
pub use folded::folded;
pub use grouping::{By, Group, address_name, function_name};
pub use gunzip::GREATEST_LIMIT;
pub use profile::Profile;
pub use records::{Function, Header, Label, LabelValue, Line, Location, Mapping, Sample, ValueType};
pub use speedscope::{SpeedscopeError, speedscope};
pub use tree::{TreeNode, TreeOptions, tree};
pub use write::write;
