//! What a profile shows: sums, trees, graphs, parts of it, and other formats.
//!
//! Nothing here recurses over input. Memory and time are proportional to its size, see `pprof/expansion.rs`. Long work
//! checks an [`Interrupt`](crate::interrupt::Interrupt), and can be called again after an interruption.

mod estimate;
mod filter;
mod flamegraph;
mod folded;
pub mod gem;
mod grouping;
mod json;
mod speedscope;
mod top;
mod tree;

pub use estimate::{Estimator, Sum};
pub use filter::FrameName;
pub use flamegraph::flamegraph;
pub use folded::folded;
pub use grouping::{By, Group, address_name, function_name};
pub use speedscope::{SpeedscopeError, speedscope};
pub use top::{Site, top};
pub use tree::{TreeNode, TreeOptions, tree};
