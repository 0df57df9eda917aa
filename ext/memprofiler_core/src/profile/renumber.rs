//! Copies what one profile refers to into the tables of another.

use super::{Builder, EMPTY_STACK, Function, Label, LabelValue, Line, Location, Mapping, Profile};
use crate::interrupt::{Interrupt, Interrupted};

/// The builder's numbers of the entries in a profile's tables.
#[derive(Default)]
pub struct Numbers {
    /// One per mapping.
    pub mappings: Vec<u32>,
    /// One per location, for those that samples refer to.
    pub locations: Vec<u32>,
    /// One per stack, for those that samples refer to.
    pub stacks: Vec<u32>,
    /// One per set of labels, for those that samples refer to.
    pub label_sets: Vec<u32>,
}

impl Numbers {
    /// Assigns numbers to all mappings, and to those other entries that samples refer to. Translating the same profile
    /// again finds the numbers that the builder already has.
    pub fn translate(
        &mut self,
        builder: &mut Builder,
        profile: &Profile,
        interrupt: &Interrupt,
    ) -> Result<(), Interrupted> {
        let tables = profile.tables();
        let mut strings = Lazy::new(tables.strings.len());
        let mut string =
            |builder: &mut Builder, id: u32| strings.get(id, || builder.string(&tables.strings[id as usize]));
        for (number, mapping) in tables.mappings.iter().enumerate() {
            interrupt.at(number)?;
            let (file, build_id) = (string(builder, mapping.file), string(builder, mapping.build_id));
            self.mappings.push(builder.mapping(Mapping { file, build_id, ..*mapping }));
        }
        let used = Used::of(profile, interrupt)?;
        self.label_sets = vec![0; tables.label_sets.len()];
        for (number, set) in tables.label_sets.iter().enumerate() {
            interrupt.at(number)?;
            if !used.label_sets[number] {
                continue;
            }
            let mut labels: Vec<Label> = set
                .iter()
                .map(|label| Label {
                    key: string(builder, label.key),
                    value: match label.value {
                        LabelValue::Text(text) => LabelValue::Text(string(builder, text)),
                        LabelValue::Number(number, unit) => LabelValue::Number(number, string(builder, unit)),
                    },
                })
                .collect();
            labels.sort_unstable();
            self.label_sets[number] = builder.label_set(&labels);
        }
        let (mut functions, mut locations) = (Lazy::new(tables.functions.len()), Lazy::new(tables.locations.len()));
        let mut function = |builder: &mut Builder, id: u32| {
            let Function { name, system_name, file, start_line } = tables.functions[id as usize];
            functions.get(id, || {
                let [name, system_name, file] = [name, system_name, file].map(|id| string(builder, id));
                builder.function(Function { name, system_name, file, start_line })
            })
        };
        self.stacks = vec![EMPTY_STACK; tables.stacks.len()];
        let mut guess = EMPTY_STACK;
        for (number, frame) in tables.stacks.iter().enumerate().skip(1) {
            interrupt.at(number)?;
            if !used.stacks[number] {
                continue;
            }
            let location = locations.get(frame.location, || {
                let Location { mapping, address, folded, lines } = &tables.locations[frame.location as usize];
                let lines = lines.iter().map(|line| Line { function: function(builder, line.function), ..*line });
                let lines = lines.collect();
                let mapping = mapping.map(|mapping| self.mappings[mapping as usize]);
                builder.location(&Location { mapping, address: *address, folded: *folded, lines })
            });
            self.stacks[number] = builder.extend_near(&mut guess, self.stacks[frame.caller as usize], location);
        }
        self.locations = locations.0;
        Ok(())
    }
}

/// Which stacks and sets of labels a profile's rows refer to.
pub struct Used {
    /// One per stack. A used stack's callers are used, too.
    pub stacks: Vec<bool>,
    /// One per set of labels.
    pub label_sets: Vec<bool>,
}

impl Used {
    /// What the rows of `profile` use.
    pub fn of(profile: &Profile, interrupt: &Interrupt) -> Result<Self, Interrupted> {
        let tables = profile.tables();
        let mut used =
            Self { stacks: vec![false; tables.stacks.len()], label_sets: vec![false; tables.label_sets.len()] };
        for (number, row) in profile.rows().iter().enumerate() {
            interrupt.at(number)?;
            used.stacks[row.stack as usize] = true;
            used.label_sets[row.labels as usize] = true;
        }
        // Callers have smaller numbers.
        for number in (1..tables.stacks.len()).rev() {
            interrupt.at(number)?;
            if used.stacks[number] {
                used.stacks[tables.stacks[number].caller as usize] = true;
            }
        }
        Ok(used)
    }
}

/// Numbers that are looked up only once.
pub struct Lazy(Vec<u32>);

impl Lazy {
    /// A list of `len` numbers, all unknown.
    pub fn new(len: usize) -> Self {
        Self(vec![u32::MAX; len])
    }

    /// The number of `id`; `number` computes it the first time.
    pub fn get(&mut self, id: u32, number: impl FnOnce() -> u32) -> u32 {
        let known = &mut self.0[id as usize];
        if *known == u32::MAX {
            *known = number();
        }
        *known
    }
}
