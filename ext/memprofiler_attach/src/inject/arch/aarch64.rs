//! 64-bit ARM: to be filled. The way back takes rt_sigreturn with a whole signal frame, as no register is free for the
//! address, and entries of functions need a BTI landing pad.

use super::Table;

/// None: not on this processor.
pub const TABLE: Option<Table> = None;
