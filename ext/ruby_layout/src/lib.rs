//! Where a Ruby keeps what a profiler reads, and how to read it: in the own process, in another one, or in what a crash
//! left. Knows nothing of Ruby's headers, so that one program reads every Ruby.

pub mod memory;
