//! Collects what the rows of a profile refer to.

use super::rows::SortedRows;
use super::{Frame, Function, Header, Label, Location, Mapping, PrefixTree, Profile, Row, Scheme, Tables};
use crate::interrupt::{Interrupt, Interrupted};
use crate::table::Table;
use std::sync::Arc;

/// The tables of a profile under construction.
#[derive(Debug)]
pub struct Builder {
    strings: Table<Arc<str>>,
    mappings: Table<Mapping>,
    functions: Table<Function>,
    locations: Table<Location>,
    stacks: PrefixTree<u32, Frame>,
    label_sets: Table<Arc<[Label]>>,
    schemes: Vec<Scheme>,
}

impl Builder {
    /// A builder with only the empty string, stack and set of labels.
    pub fn new() -> Self {
        let mut builder = Self {
            strings: Table::default(),
            mappings: Table::default(),
            functions: Table::default(),
            locations: Table::default(),
            stacks: PrefixTree::new(u32::MAX),
            label_sets: Table::default(),
            schemes: Vec::new(),
        };
        builder.strings.id(&Arc::from(""));
        builder.label_sets.id(&Arc::from([]));
        builder
    }

    /// The number of a string.
    pub fn string(&mut self, text: &Arc<str>) -> u32 {
        self.strings.id(text)
    }

    /// The number of `text`; `make` creates it if it is new.
    pub fn string_or(&mut self, text: &str, make: impl FnOnce() -> Arc<str>) -> u32 {
        self.strings.id_or(text, make)
    }

    /// The number of `text`, if it has one.
    pub fn find_string(&self, text: &str) -> Option<u32> {
        self.strings.find(text)
    }

    /// The string with a number that this builder returned.
    pub fn text(&self, number: u32) -> Arc<str> {
        Arc::clone(&self.strings.values()[number as usize])
    }

    /// The number of a mapping.
    pub fn mapping(&mut self, mapping: Mapping) -> u32 {
        self.mappings.id(&mapping)
    }

    /// The number of a function.
    pub fn function(&mut self, function: Function) -> u32 {
        self.functions.id(&function)
    }

    /// The number of a location.
    pub fn location(&mut self, location: &Location) -> u32 {
        self.locations.id(location)
    }

    /// The number of the stack that extends `caller` by `location`.
    #[inline]
    pub fn extend(&mut self, caller: u32, location: u32) -> u32 {
        self.stacks.child(caller, location)
    }

    /// Like [`extend`](Self::extend), with a guess; see `PrefixTree::child_near`.
    #[inline]
    pub fn extend_near(&mut self, guess: &mut u32, caller: u32, location: u32) -> u32 {
        self.stacks.child_near(guess, caller, location)
    }

    /// The number of a set of labels. The same labels in another order are another set.
    pub fn label_set(&mut self, labels: &[Label]) -> u32 {
        self.label_sets.id_or(labels, || Arc::from(labels))
    }

    /// The number of a sampling scheme.
    pub fn scheme(&mut self, scheme: Scheme) -> u32 {
        let known = self.schemes.iter().position(|&known| known == scheme);
        known.unwrap_or_else(|| {
            self.schemes.push(scheme);
            self.schemes.len() - 1
        }) as u32
    }

    /// A profile with these rows, which may repeat, and their values. Leaves the builder empty, or unchanged if
    /// interrupted.
    pub fn finish(
        &mut self,
        header: &Header,
        rows: &[Row],
        values: &[i64],
        interrupt: &Interrupt,
    ) -> Result<Profile, Interrupted> {
        let content = SortedRows::new(rows, values, header.sample_types.len(), self.stacks.len(), interrupt)?;
        let mut this = std::mem::take(self);
        let stacks = std::mem::replace(&mut this.stacks, PrefixTree::new(u32::MAX)).into_nodes();
        Ok(this.into_profile(header, stacks, content))
    }

    /// A profile with these rows, which are distinct and have a value other than 0, and their values; those of a sample
    /// are adjacent. They refer to `stacks`, whose first one is empty, in place of this builder's. Copies none of it.
    pub fn finish_with(
        self,
        header: &Header,
        stacks: Vec<Frame>,
        rows: Vec<Row>,
        values: Vec<i64>,
    ) -> Result<Profile, Interrupted> {
        let content = SortedRows::find_samples(rows, values, header.sample_types.len(), &Interrupt::default())?;
        Ok(self.into_profile(header, stacks, content))
    }

    fn into_profile(self, header: &Header, stacks: Vec<Frame>, content: SortedRows) -> Profile {
        let tables = Tables {
            strings: self.strings.into_values(),
            mappings: self.mappings.into_values(),
            functions: self.functions.into_values(),
            locations: self.locations.into_values(),
            stacks,
            label_sets: self.label_sets.into_values(),
            schemes: self.schemes,
        };
        Profile::new(Arc::new(header.clone()), Arc::new(tables), content)
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}
