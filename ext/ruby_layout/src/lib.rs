//! Where a Ruby keeps what a profiler reads, and how to read it: in the own process, in another one, or in what a crash
//! left. Knows nothing of Ruby's headers, so that one program reads every Ruby.

mod class;
pub mod frames;
pub mod function;
pub mod iseq;
pub mod label;
pub mod layout;
mod line;
pub mod memory;
pub mod method;
pub mod object;
pub mod reader;
mod shape;
pub mod stack;
pub mod symbols;
pub mod thread;
pub mod value;

pub use line::line;
