//! What a node means to a search.

use serde::{Deserialize, Serialize};

/// A node by its number, in the order of discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

impl NodeId {
    /// What holds everything: its children are the categories of roots.
    pub const ROOT: Self = Self(0);
    /// Stands for no node.
    pub(super) const NONE: Self = Self(u32::MAX);

    /// The node with that number, which must be less than 2^32 - 1.
    #[inline]
    pub(super) const fn new(number: usize) -> Self {
        Self(number as u32)
    }

    /// Its number.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node means to a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Kind {
    /// The node [`NodeId::ROOT`].
    Root,
    /// One of the VM's kinds of roots.
    Category,
    /// A named class or module, or the table of global variables: where a path begins as a programmer would tell it.
    Anchor,
    /// A thread or fiber.
    Thread,
    /// A thread or fiber in which nothing runs: an object like any other, but for its name.
    EndedThread,
    /// Code, such as an instruction sequence, which explains little.
    Code,
    /// An inline or call cache, or what else explains nothing: what it refers to does not count as held by it.
    Cache,
    /// Any other object.
    Plain,
}
