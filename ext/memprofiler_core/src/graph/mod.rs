//! Who holds an object: the reference graph of a heap, and what it says.
//!
//! A [`Builder`] makes a [`Graph`] of what a walk over a heap sees; [`answer`] tells what holds sampled objects, with
//! the names that a [`Describe`] knows; [`profile`](profile()) makes a profile of it. Nothing recurses, and nothing
//! depends on the content of objects.

mod accumulation;
mod address_index;
mod answer;
mod answering;
mod bit_set;
mod builder;
mod contest;
mod describe;
mod dominators;
mod estimates;
mod found;
mod groups;
mod holders;
mod kind;
mod largest;
mod links;
mod names;
mod nodes;
mod others;
mod path_sums;
mod paths;
mod phrase;
mod profile;
mod question;
mod referrers;
mod search;
mod spanning_tree;
mod trails;

pub use answer::{Answer, Class, Estimate, Holder, Largest, Link, Path, PathFrame, PathTree, Site, Unreachable};
pub use answering::answer;
pub use builder::Builder;
pub use describe::{Describe, Edge, NodeName};
pub use dominators::Dominators;
pub(crate) use estimates::Sums;
pub use kind::{Kind, NodeId};
pub use nodes::Graph;
pub use profile::profile;
pub use question::{Question, Sample, SiteName};
pub use search::Search;
