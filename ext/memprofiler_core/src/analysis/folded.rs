//! Folded stacks, as Brendan Gregg's flame graph scripts read them.

use super::grouping::{address_name, function_name};
use super::profile::Profile;
use crate::hash::SecretState;
use std::collections::HashMap;
use std::fmt::Write;

/// One column as a line per stack: the names of its functions from the outermost to the innermost, separated by `;`, and
/// the value. A `;` in a name becomes `:`, a line break a space. Stacks whose value is 0 are left out.
pub fn folded(profile: &Profile, column: usize) -> String {
    let tables = profile.tables();
    let names: Vec<String> = tables
        .locations
        .iter()
        .map(|location| {
            if location.lines.is_empty() {
                return escaped(&address_name(profile, location));
            }
            let names = location.lines.iter().rev().map(|line| escaped(function_name(profile, line.function)));
            names.collect::<Vec<_>>().join(";")
        })
        .collect();
    let mut order = Vec::new();
    let mut values: HashMap<u32, i64, SecretState> = HashMap::default();
    for sample in profile.samples() {
        let value = values.entry(sample.stack).or_insert_with(|| {
            order.push(sample.stack);
            0
        });
        *value = value.saturating_add(sample.values[column]);
    }
    let mut text = String::new();
    let mut locations = Vec::new();
    for stack in order {
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
            if position > 0 {
                text.push(';');
            }
            text.push_str(&names[location as usize]);
        }
        // Writing into a String does not fail.
        let _ = writeln!(text, " {value}");
    }
    text
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
