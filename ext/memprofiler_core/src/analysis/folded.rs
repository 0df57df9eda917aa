//! Folded stacks, the input of Brendan Gregg's flame graph scripts.

use super::grouping::{address_name, function_name};
use crate::hash::SecretState;
use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::Profile;
use std::collections::HashMap;
use std::fmt::Write;

/// One column, with a line per stack: the names of its functions, outermost first, separated by `;`, then the value. A
/// `;` in a name becomes `:`, a line break becomes a space. Leaves out stacks with a value of 0.
pub fn folded(profile: &Profile, column: usize, interrupt: &Interrupt) -> Result<String, Interrupted> {
    let tables = profile.tables();
    let mut names = Vec::with_capacity(tables.locations.len());
    for (number, location) in tables.locations.iter().enumerate() {
        interrupt.at(number)?;
        if location.lines.is_empty() {
            names.push(escaped(&address_name(profile, location)));
            continue;
        }
        let lines = location.lines.iter().rev().map(|line| escaped(function_name(profile, line.function)));
        names.push(lines.collect::<Vec<_>>().join(";"));
    }
    let mut order = Vec::new();
    let mut values: HashMap<u32, i64, SecretState> = HashMap::default();
    for (number, sample) in profile.samples().enumerate() {
        interrupt.at(number)?;
        let value = values.entry(sample.stack).or_insert_with(|| {
            order.push(sample.stack);
            0
        });
        *value = value.saturating_add(sample.values[column]);
    }
    let mut text = String::new();
    let mut locations = Vec::new();
    for (number, stack) in order.into_iter().enumerate() {
        interrupt.at(number)?;
        let value = values.get(&stack).copied().unwrap_or_default();
        if value == 0 {
            continue;
        }
        locations.clear();
        locations.extend(profile.locations(stack));
        if locations.is_empty() {
            text.push_str("(no stack)");
        }
        for (position, &location) in locations.iter().rev().enumerate() {
            interrupt.at(position + 1)?;
            if position > 0 {
                text.push(';');
            }
            text.push_str(&names[location as usize]);
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, " {value}");
    }
    Ok(text)
}

fn escaped(name: &str) -> String {
    name.chars()
        .map(|each| {
            if each == ';' {
                ':'
            } else if each.is_control() {
                ' '
            } else {
                each
            }
        })
        .collect()
}
