//! Parts of profiles.

use super::gem;
use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::{Location, Profile};

impl Profile {
    /// The samples with at least one frame that `matches`, or with `invert` those without one. Frames are passed as
    /// function numbers, or as location numbers where the function is unknown.
    pub fn filter_frames(
        &self,
        invert: bool,
        matches: impl Fn(FrameName) -> bool,
        interrupt: &Interrupt,
    ) -> Result<Self, Interrupted> {
        let tables = self.tables();
        let functions: Vec<bool> =
            (0..tables.functions.len()).map(|number| matches(FrameName::Function(number as u32))).collect();
        let mut locations = vec![false; tables.locations.len()];
        for (number, location) in tables.locations.iter().enumerate() {
            interrupt.at(number)?;
            locations[number] = match &*location.lines {
                [] => matches(FrameName::Location(number as u32)),
                lines => lines.iter().any(|line| functions[line.function as usize]),
            };
        }
        let mut stacks = vec![false; tables.stacks.len()];
        for (number, frame) in tables.stacks.iter().enumerate().skip(1) {
            interrupt.at(number)?;
            stacks[number] = stacks[frame.caller as usize] || locations[frame.location as usize];
        }
        self.select(|row| stacks[row.stack as usize] != invert, interrupt)
    }

    /// The samples whose set of labels, an index into the profile's sets, `matches`.
    pub fn filter_labels(&self, matches: impl Fn(u32) -> bool, interrupt: &Interrupt) -> Result<Self, Interrupted> {
        let sets: Vec<bool> = (0..self.tables().label_sets.len() as u32).map(matches).collect();
        self.select(|row| sets[row.labels as usize], interrupt)
    }

    /// All samples without the frames of gems and Ruby, so that their allocations count for the line of the program
    /// that called them. A stack without any frame of the program stays as it is.
    pub fn without_libraries(&self, interrupt: &Interrupt) -> Result<Self, Interrupted> {
        let tables = self.tables();
        let is_own = |location: &Location| {
            let file = |function: u32| &tables.strings[tables.functions[function as usize].file as usize];
            location.lines.iter().any(|line| gem::of(file(line.function)) == "app")
        };
        let mut own = Vec::with_capacity(tables.locations.len());
        for (number, location) in tables.locations.iter().enumerate() {
            interrupt.at(number)?;
            own.push(is_own(location));
        }
        self.only_locations(&own, interrupt)
    }
}

/// What identifies a frame.
#[derive(Debug, Clone, Copy)]
pub enum FrameName {
    /// An index into the profile's functions.
    Function(u32),
    /// An index into the profile's locations.
    Location(u32),
}
