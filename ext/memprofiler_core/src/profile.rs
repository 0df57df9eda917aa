//! A heap profile in memory: what a snapshot of the live set becomes, and what the encoder reads.

use crate::hash::Map;
use crate::labels::LabelSet;
use crate::table::Table;
use std::sync::Arc;

/// The values of one sample, each an estimate for the whole program. Kept as floats until they are written, so that
/// they are rounded once.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Values {
    /// Objects allocated in the interval.
    pub allocations: f64,
    /// Their bytes.
    pub allocated_bytes: f64,
    /// Objects alive.
    pub retained: f64,
    /// Their bytes.
    pub retained_bytes: f64,
}

impl Values {
    /// In the order of the profile's sample types, each rounded to the nearest whole number.
    pub fn rounded(self) -> [i64; 4] {
        [self.allocations, self.allocated_bytes, self.retained, self.retained_bytes].map(|value| value.round() as i64)
    }
}

impl std::ops::AddAssign for Values {
    fn add_assign(&mut self, other: Self) {
        self.allocations += other.allocations;
        self.allocated_bytes += other.allocated_bytes;
        self.retained += other.retained;
        self.retained_bytes += other.retained_bytes;
    }
}

/// A string of the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StringId(pub u32);

/// A function with a name, a file and a first line (0 if unknown).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name.
    pub name: StringId,
    /// The file that defines it.
    pub file: StringId,
    /// The line on which it begins.
    pub start_line: u32,
}

/// A line (0 if unknown) of a function, the latter an index into [`Profile::functions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location {
    /// The function.
    pub function: u32,
    /// The line.
    pub line: u32,
}

/// A frame of a stack, an index into [`Profile::frames`]; the empty stack is None.
pub type Stack = Option<u32>;

/// A location and the stack that called it. A frame's caller has a smaller index than the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The caller.
    pub caller: Stack,
    /// Index into [`Profile::locations`].
    pub location: u32,
}

/// A set of labels, an index into [`Profile::label_sets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelsId(pub u32);

/// What tells one sample from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampleKey {
    /// The stack that allocated.
    pub stack: Stack,
    /// The objects' class, if samples are told apart by it.
    pub class: Option<StringId>,
    /// How many garbage collections the objects survived, quantised, if samples are told apart by it.
    pub age: Option<u32>,
    /// The labels that the program had put on them.
    pub labels: Option<LabelsId>,
}

/// Tables in which equal values are stored once, and the samples that refer to them.
#[derive(Debug, Default)]
pub struct Profile {
    /// All strings. The first one is empty, as pprof asks.
    pub strings: Table<Arc<str>>,
    /// All functions.
    pub functions: Table<Function>,
    /// All locations.
    pub locations: Table<Location>,
    /// All stacks, as a tree.
    pub frames: Table<Frame>,
    /// All sets of labels: keys and values.
    pub label_sets: Table<Vec<(StringId, StringId)>>,
    samples: Map<SampleKey, Values>,
}

impl Profile {
    /// A profile without samples.
    pub fn new() -> Self {
        let mut profile = Self::default();
        profile.string(&Arc::from(""));
        profile
    }

    /// The id of a string.
    pub fn string(&mut self, text: &Arc<str>) -> StringId {
        StringId(self.strings.id(text))
    }

    /// The id of a set of labels, to which those of `outer` are added that have other keys.
    pub fn labels(&mut self, labels: &LabelSet, outer: Option<LabelsId>) -> LabelsId {
        let own = labels.pairs().iter();
        let mut pairs: Vec<_> = own.map(|(key, value)| (self.string(key), self.string(value))).collect();
        if let Some(LabelsId(outer)) = outer {
            let keys: Vec<StringId> = pairs.iter().map(|&(key, _)| key).collect();
            let outer = self.label_sets.values()[outer as usize].iter();
            pairs.extend(outer.filter(|(key, _)| !keys.contains(key)));
        }
        LabelsId(self.label_sets.id(&pairs))
    }

    /// The location for a line of a function.
    pub fn location(&mut self, function: Function, line: u32) -> u32 {
        let function = self.functions.id(&function);
        self.locations.id(&Location { function, line })
    }

    /// The stack `caller` extended by `location`.
    pub fn extend(&mut self, caller: Stack, location: u32) -> Stack {
        Some(self.frames.id(&Frame { caller, location }))
    }

    /// Adds to the values of one sample.
    pub fn add(&mut self, key: SampleKey, values: Values) {
        *self.samples.entry(key).or_default() += values;
    }

    /// The samples, those with equal keys as one, in an order that depends on the keys only.
    pub fn samples(&self) -> Vec<(SampleKey, Values)> {
        let mut samples: Vec<_> = self.samples.iter().map(|(&key, &values)| (key, values)).collect();
        samples.sort_unstable_by_key(|&(key, _)| key);
        samples
    }
}
