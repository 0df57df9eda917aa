//! Which parts of a profile are written.

use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::{LabelValue, Profile, Used};

/// Which entries of a profile's tables are written.
pub struct Selection {
    pub locations: Vec<bool>,
    pub functions: Vec<bool>,
    pub strings: Vec<bool>,
}

impl Selection {
    /// All of them.
    pub fn all(profile: &Profile) -> Self {
        let tables = profile.tables();
        let [locations, functions, strings] =
            [tables.locations.len(), tables.functions.len(), tables.strings.len()].map(|len| vec![true; len]);
        Self { locations, functions, strings }
    }

    /// Those that samples refer to, and those that mappings refer to.
    pub fn used(profile: &Profile, interrupt: &Interrupt) -> Result<Self, Interrupted> {
        let (tables, used) = (profile.tables(), Used::of(profile, interrupt)?);
        let [mut locations, mut functions, mut strings] =
            [tables.locations.len(), tables.functions.len(), tables.strings.len()].map(|len| vec![false; len]);
        strings[0] = true;
        for (number, frame) in tables.stacks.iter().enumerate().skip(1) {
            interrupt.at(number)?;
            locations[frame.location as usize] |= used.stacks[number];
        }
        for (number, location) in tables.locations.iter().enumerate().filter(|&(number, _)| locations[number]) {
            interrupt.at(number)?;
            location.lines.iter().for_each(|line| functions[line.function as usize] = true);
        }
        let mut mark = |string: u32| strings[string as usize] = true;
        for (number, function) in tables.functions.iter().enumerate().filter(|&(number, _)| functions[number]) {
            interrupt.at(number)?;
            [function.name, function.system_name, function.file].into_iter().for_each(&mut mark);
        }
        for (number, labels) in tables.label_sets.iter().enumerate().filter(|&(number, _)| used.label_sets[number]) {
            interrupt.at(number)?;
            for label in &**labels {
                let (LabelValue::Text(value) | LabelValue::Number(_, value)) = label.value;
                [label.key, value].into_iter().for_each(&mut mark);
            }
        }
        tables.mappings.iter().flat_map(|mapping| [mapping.file, mapping.build_id]).for_each(mark);
        Ok(Self { locations, functions, strings })
    }
}
