//! The reference graph of Ruby's heap, and what its objects and references are called.
//!
//! [`Prepared::new`] calls Ruby methods, in the program. [`walk`] and [`Describer`] only read: they neither allocate on
//! Ruby's heap, nor call methods, nor raise, and the VM's functions that they call take no memory from malloc, so that
//! they also work in a copy of the process in which another thread held malloc's lock. What they cannot know on this
//! Ruby they leave unknown.

mod callback;
mod check;
mod classes;
mod describer;
mod edges;
mod edges_of_data;
mod locals;
mod names;
mod prepared;
mod references;
mod sets;
mod tables;
mod text;
mod threads;
mod types;
mod variables;
mod walk;

pub use callback::Callback;
pub use describer::Describer;
pub use prepared::Prepared;
pub use types::{DataType, data};
pub use walk::{Sizes, is_fields, walk};
