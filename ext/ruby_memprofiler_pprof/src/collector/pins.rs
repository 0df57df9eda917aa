//! What keeps objects of the VM's alive until it is known by name.

use rb_sys::VALUE;

/// How many functions and classes may come that do so, before all are named.
const MOST: usize = 4096;

/// How much has come that is not known by name.
#[derive(Debug, Default)]
pub struct Pins {
    /// How many functions and classes, since all were named.
    lately: usize,
    /// Whether it is time to do something about it.
    pub due: bool,
}

impl Pins {
    /// Counts one more, which is `kept` alive by a keeper, or which the holder itself has to mark.
    pub fn add(&mut self, kept: bool) {
        self.lately += 1;
        self.due |= self.are_many() || !kept;
    }

    /// Whether as many have come as may.
    pub fn are_many(&self) -> bool {
        self.lately >= MOST
    }

    /// Replaces the count by that of those there still are.
    pub fn recount(&mut self, count: usize) {
        self.lately = count;
    }
}

/// The Ruby object that marks what tables refer to, unless a keeper does, and what is counted of that.
#[derive(Debug)]
pub struct Holder<'a> {
    pub object: VALUE,
    pub pins: &'a mut Pins,
}
