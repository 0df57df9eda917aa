//! References that keep the VM's objects alive until they are known by name.

use rb_sys::VALUE;

/// How many such functions and classes may accumulate before they are named.
const MOST: usize = 4096;

/// Counts what is not known by name yet.
#[derive(Debug, Default)]
pub struct Pins {
    /// How many functions and classes were added since all were named.
    lately: usize,
    /// Whether it is time to name them.
    pub due: bool,
}

impl Pins {
    /// Counts one more; `kept` says whether a keeper marks it, or the holder itself has to.
    pub fn add(&mut self, kept: bool) {
        self.lately += 1;
        self.due |= self.are_many() || !kept;
    }

    /// Whether the limit is reached.
    pub fn are_many(&self) -> bool {
        self.lately >= MOST
    }

    /// Replaces the count by the number of those that remain.
    pub fn recount(&mut self, count: usize) {
        self.lately = count;
    }
}

/// The Ruby object that marks what the tables refer to, unless a keeper does, and the count of these references.
#[derive(Debug)]
pub struct Holder<'a> {
    pub object: VALUE,
    pub pins: &'a mut Pins,
}
