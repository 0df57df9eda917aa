//! What a profile says: sums, trees, graphs, parts of it, and other formats.
//!
//! Nothing here recurses over what was read. Memory and time are proportional to its size, see `pprof/expansion.rs`.
//! What may take long looks at an [`Interrupt`](crate::interrupt::Interrupt), and can be called again when it was
//! struck.

mod estimate;
mod filter;
mod flamegraph;
mod folded;
mod gem;
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
