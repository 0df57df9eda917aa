//! Collects what the rows of a profile refer to.

use super::estimate::Scheme;
use super::profile::Profile;
use super::records::{Function, Header, Label, Location, Mapping, Row, Tables};
use super::stack_table::StackTable;
use crate::hash::SecretState;
use crate::table::Table as AnyTable;
use std::sync::Arc;

type Table<T> = AnyTable<T, SecretState>;

/// The tables of a profile under construction.
pub struct Builder {
    strings: Table<Arc<str>>,
    mappings: Table<Mapping>,
    functions: Table<Function>,
    locations: Table<Location>,
    stacks: StackTable,
    label_sets: Table<Arc<[Label]>>,
    schemes: Vec<Scheme>,
}

impl Builder {
    /// Nothing but the empty string, stack and set of labels.
    pub fn new() -> Self {
        let mut builder = Self {
            strings: Table::default(),
            mappings: Table::default(),
            functions: Table::default(),
            locations: Table::default(),
            stacks: StackTable::new(),
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

    /// The number of `text`; `make` makes it if it is new.
    pub fn string_or(&mut self, text: &str, make: impl FnOnce() -> Arc<str>) -> u32 {
        self.strings.id_or(text, make)
    }

    /// The string with a number that it gave out.
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

    /// The number of the stack `caller` extended by `location`.
    #[inline]
    pub fn extend(&mut self, caller: u32, location: u32) -> u32 {
        self.stacks.extend(caller, location)
    }

    /// The same, see [`StackTable::extend_near`].
    #[inline]
    pub fn extend_near(&mut self, guess: &mut u32, caller: u32, location: u32) -> u32 {
        self.stacks.extend_near(guess, caller, location)
    }

    /// The number of a set of labels, which is sorted.
    pub fn label_set(&mut self, labels: &mut [Label]) -> u32 {
        labels.sort_unstable();
        self.label_sets.id_or(&*labels, || Arc::from(&*labels))
    }

    /// The number of a way to take samples.
    pub fn scheme(&mut self, scheme: Scheme) -> u32 {
        let known = self.schemes.iter().position(|&known| known == scheme);
        known.unwrap_or_else(|| {
            self.schemes.push(scheme);
            self.schemes.len() - 1
        }) as u32
    }

    /// The profile with these rows, of which some may be equal, and the values of each.
    pub fn finish(self, header: Header, rows: &[Row], values: &[i64]) -> Profile {
        let tables = Tables {
            strings: self.strings.into_values(),
            mappings: self.mappings.into_values(),
            functions: self.functions.into_values(),
            locations: self.locations.into_values(),
            stacks: self.stacks.into_frames(),
            label_sets: self.label_sets.into_values(),
            schemes: self.schemes,
        };
        Profile::new(Arc::new(header), Arc::new(tables), rows, values)
    }
}
