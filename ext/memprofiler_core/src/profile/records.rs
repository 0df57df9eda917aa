//! The records of a profile. They refer to names and other table entries by index.

use super::Scheme;
use std::sync::Arc;

/// What one column of values counts, such as `retained_size` in `bytes`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ValueType {
    /// Its name.
    pub name: Arc<str>,
    /// Its unit.
    pub unit: Arc<str>,
}

impl ValueType {
    /// The value type with this name and unit.
    pub fn new(name: &str, unit: &str) -> Self {
        Self { name: name.into(), unit: unit.into() }
    }
}

impl std::fmt::Display for ValueType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.name, self.unit)
    }
}

/// What a profile says about itself as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// The types of each sample's values, in the same order.
    pub sample_types: Vec<ValueType>,
    /// The name of the type to show first; empty if the profile does not say.
    pub default_sample_type: Arc<str>,
    /// When it was taken, in nanoseconds since 1970; 0 if unknown.
    pub time_nanos: i64,
    /// The length of the recorded interval, in nanoseconds.
    pub duration_nanos: i64,
    /// The kind of event that the period counts.
    pub period_type: Option<ValueType>,
    /// The number of events per sample.
    pub period: i64,
    /// Free text for people.
    pub comments: Vec<Arc<str>>,
    /// A regular expression for frames to hide. This and the next are kept for other readers, and not applied here.
    pub drop_frames: Arc<str>,
    /// A regular expression for frames not to hide.
    pub keep_frames: Arc<str>,
    /// A page about the profile.
    pub doc_url: Arc<str>,
}

impl Header {
    /// The column to show first: the one that the profile names, or else the last one, as in pprof.
    pub fn default_column(&self) -> Option<usize> {
        let named = self.sample_types.iter().position(|each| each.name == self.default_sample_type);
        named.or_else(|| self.sample_types.len().checked_sub(1))
    }

    /// The column that counts the objects of another: of counts the same, of bytes the one before them if it has
    /// counts.
    pub fn count_column(&self, column: usize) -> Option<usize> {
        let unit = |column: usize| self.sample_types.get(column).map(|value_type| &*value_type.unit);
        match unit(column)? {
            "count" => Some(column),
            "bytes" => column.checked_sub(1).filter(|&before| unit(before) == Some("count")),
            _ => None,
        }
    }
}

/// A part of the program; strings are indices into [`Tables::strings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// One past the last address.
    pub limit: u64,
    /// Where in the file the first address lies.
    pub offset: u64,
    /// The file.
    pub file: u32,
    /// What distinguishes versions of the file.
    pub build_id: u32,
    /// What is known about its locations: functions, file names, line numbers, inlined functions.
    pub has: [bool; 4],
}

/// A function; strings are indices into [`Tables::strings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name.
    pub name: u32,
    /// What the linker calls it.
    pub system_name: u32,
    /// The file that defines it.
    pub file: u32,
    /// The line on which it begins; 0 if unknown.
    pub start_line: i64,
}

/// A line of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Line {
    /// Index into [`Tables::functions`].
    pub function: u32,
    /// The line; 0 if unknown.
    pub line: i64,
    /// The column; 0 if unknown.
    pub column: i64,
}

/// A place in the program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Location {
    /// Index into [`Tables::mappings`].
    pub mapping: Option<u32>,
    /// The address of the code, or 0.
    pub address: u64,
    /// Several places that could not be distinguished.
    pub folded: bool,
    /// The innermost of several inlined functions comes first; empty if only the address is known.
    pub lines: Arc<[Line]>,
}

/// The innermost frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The stack that called it; has a smaller index.
    pub caller: u32,
    /// Index into [`Tables::locations`].
    pub location: u32,
}

impl From<(u32, u32)> for Frame {
    fn from((caller, location): (u32, u32)) -> Self {
        Self { caller, location }
    }
}

/// The empty stack, which is always the first.
pub const EMPTY_STACK: u32 = 0;

/// A key and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// Index into [`Tables::strings`].
    pub key: u32,
    /// The value.
    pub value: LabelValue,
}

/// The value of a label; strings are indices into [`Tables::strings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LabelValue {
    /// A string.
    Text(u32),
    /// A number with its unit.
    Number(i64, u32),
}

/// What samples refer to, without duplicates.
#[derive(Debug, Default)]
pub struct Tables {
    /// All strings. The first one is empty.
    pub strings: Vec<Arc<str>>,
    /// All mappings, the main program first.
    pub mappings: Vec<Mapping>,
    /// All functions.
    pub functions: Vec<Function>,
    /// All locations.
    pub locations: Vec<Location>,
    /// All stacks. The first one is empty, and its frame has no meaning.
    pub stacks: Vec<Frame>,
    /// All sets of labels. The first one is empty.
    pub label_sets: Vec<Arc<[Label]>>,
    /// All sampling schemes.
    pub schemes: Vec<Scheme>,
}

/// The key of a row of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Row {
    /// Index into [`Tables::stacks`].
    pub stack: u32,
    /// Index into [`Tables::label_sets`].
    pub labels: u32,
    /// Index into [`Tables::schemes`].
    pub scheme: u32,
    /// The order of magnitude of its objects' sizes. Rows that differ only here or in their scheme are one sample; they
    /// are kept apart because the error of their sum depends on the parts.
    pub magnitude: u32,
}

impl Row {
    /// A row of a profile in which no other has the same stack, labels and scheme.
    pub fn new(stack: u32, labels: u32, scheme: u32) -> Self {
        Self { stack, labels, scheme, magnitude: 0 }
    }
}

/// A stack with labels and one value per sample type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Index into [`Tables::stacks`].
    pub stack: u32,
    /// Index into [`Tables::label_sets`].
    pub labels: u32,
    /// In the order of [`Header::sample_types`].
    pub values: Vec<i64>,
}
