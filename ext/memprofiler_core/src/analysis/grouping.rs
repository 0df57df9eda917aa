//! Groups for which figures are added up.

use super::gem;
use crate::hash::SecretState;
use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::{LabelValue, Location, Profile, Tables};
use std::collections::HashMap;
use std::sync::Arc;

/// How to group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// By function: name and file. Functions without a file, and in this gem's profiles those written in C, by name
    /// alone.
    Method,
    /// By line of a file. What a C function allocates counts for the line that calls it.
    Line,
    /// By file.
    File,
    /// By gem, see `gem::of`.
    Gem,
    /// By the label `class`.
    Class,
}

/// A group. Fields are None if they are unknown, or if they differ among what was added up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Group {
    /// Its name.
    pub name: Arc<str>,
    /// Its file.
    pub file: Option<Arc<str>>,
    /// Its line; the first one of a method.
    pub line: Option<i64>,
    /// The name of the function that contains the line.
    pub function: Option<Arc<str>>,
}

impl Group {
    /// A group of which only the name is known.
    pub fn named(name: Arc<str>) -> Self {
        Self { name, file: None, line: None, function: None }
    }
}

#[derive(PartialEq, Eq, Hash)]
enum Key {
    Method { name: u32, file: u32 },
    Line { file: u32, line: i64 },
    Text(Arc<str>),
}

/// The comment of this gem's profiles with stacks from Ruby's own backtraces.
const TEXTS: &str = "bt_method=backtrace_locations";

/// The groups of a profile.
pub struct Grouping<'a> {
    profile: &'a Profile,
    by: By,
    groups: Vec<Group>,
    index: HashMap<Key, u32, SecretState>,
    /// Whether the stacks were read as texts, which have no first lines.
    lacks_first_lines: bool,
    /// For each location, a range in `members`.
    locations: Vec<std::ops::Range<usize>>,
    /// Groups: for each location those of its lines, innermost first.
    members: Vec<u32>,
}

impl<'a> Grouping<'a> {
    /// Finds the groups of all locations.
    pub fn new(profile: &'a Profile, by: By, interrupt: &Interrupt) -> Result<Self, Interrupted> {
        let index = HashMap::default();
        let lacks_first_lines = profile.header().comments.iter().any(|comment| &**comment == TEXTS);
        let mut grouping = Self {
            profile,
            by,
            groups: Vec::new(),
            index,
            lacks_first_lines,
            locations: Vec::new(),
            members: Vec::new(),
        };
        for (number, location) in profile.tables().locations.iter().enumerate() {
            interrupt.at(number)?;
            let start = grouping.members.len();
            grouping.add(location);
            grouping.locations.push(start..grouping.members.len());
        }
        Ok(grouping)
    }

    fn add(&mut self, location: &Location) {
        if location.lines.is_empty() {
            let name = address_name(self.profile, location);
            let group = self.text(name);
            self.members.push(group);
        }
        let tables = self.profile.tables();
        let string = |id: u32| &tables.strings[id as usize];
        let has_c_functions = !self.lacks_first_lines && is_ruby(tables, location);
        for line in &*location.lines {
            let function = tables.functions[line.function as usize];
            let name_id = function_name_id(self.profile, line.function);
            let name = &tables.strings[name_id as usize];
            let file = string(function.file);
            // Functions written in C have no first line, and report their caller's file. `<main>` has no first line
            // either, though its file is right.
            let begins = function.start_line != 0 || name.starts_with('<') || !has_c_functions;
            let group = match self.by {
                By::Method if file.is_empty() || !begins => self.text(Arc::clone(name)),
                By::Method => {
                    let key = Key::Method { name: name_id, file: function.file };
                    let line = Some(function.start_line).filter(|&line| line != 0);
                    let (name, file) = (Arc::clone(name), Some(Arc::clone(file)));
                    self.group(key, || Group { name, file, line, function: None })
                }
                By::Line if file.is_empty() => self.text(Arc::clone(name)),
                By::Line => {
                    let group = self.group(Key::Line { file: function.file, line: line.line }, || Group {
                        name: format!("{file}:{}", line.line).into(),
                        file: Some(Arc::clone(file)),
                        line: Some(line.line),
                        function: None,
                    });
                    // A C function reports its caller's line without containing it.
                    let known = &mut self.groups[group as usize].function;
                    if known.is_none() && begins {
                        *known = Some(Arc::clone(name));
                    }
                    group
                }
                By::File if file.is_empty() => self.text("(unknown)".into()),
                By::File => self.text(Arc::clone(file)),
                By::Gem | By::Class => self.text(gem::of(file).into()),
            };
            self.members.push(group);
        }
    }

    fn group(&mut self, key: Key, make: impl FnOnce() -> Group) -> u32 {
        *self.index.entry(key).or_insert_with(|| {
            self.groups.push(make());
            (self.groups.len() - 1) as u32
        })
    }

    fn text(&mut self, name: Arc<str>) -> u32 {
        self.group(Key::Text(Arc::clone(&name)), || Group::named(name))
    }

    /// The groups of a location's lines, innermost first.
    pub fn of_location(&self, location: u32) -> &[u32] {
        &self.members[self.locations[location as usize].clone()]
    }

    /// The group of the samples without a stack.
    pub fn of_no_stack(&mut self) -> u32 {
        self.text("(no stack)".into())
    }

    /// The class that a set of labels names.
    pub fn class(&self, labels: u32) -> Option<Arc<str>> {
        let tables = self.profile.tables();
        tables.label_sets[labels as usize].iter().find_map(|label| match label.value {
            LabelValue::Text(text) if &*tables.strings[label.key as usize] == "class" => {
                Some(Arc::clone(&tables.strings[text as usize]))
            }
            _ => None,
        })
    }

    /// The group of a class.
    pub fn of_class(&mut self, labels: u32) -> u32 {
        self.text(self.class(labels).unwrap_or_else(|| "(no class)".into()))
    }

    /// All groups so far.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// All groups.
    pub fn into_groups(self) -> Vec<Group> {
        self.groups
    }

    /// The number of groups.
    pub fn len(&self) -> usize {
        self.groups.len()
    }
}

/// Whether it is a place in a Ruby program as this gem records it: in a mapping without addresses.
fn is_ruby(tables: &Tables, location: &Location) -> bool {
    let mapping = location.mapping.map(|mapping| tables.mappings[mapping as usize]);
    mapping.is_some_and(|mapping| mapping.limit == 0 && &*tables.strings[mapping.file as usize] == "ruby")
}

/// The display name of a function.
pub fn function_name(profile: &Profile, function: u32) -> &Arc<str> {
    &profile.tables().strings[function_name_id(profile, function) as usize]
}

fn function_name_id(profile: &Profile, function: u32) -> u32 {
    let tables = profile.tables();
    let function = tables.functions[function as usize];
    if tables.strings[function.name as usize].is_empty() { function.system_name } else { function.name }
}

/// The display name of a place of which only the address is known.
pub fn address_name(profile: &Profile, location: &Location) -> Arc<str> {
    let tables = profile.tables();
    let file = location.mapping.map_or("", |mapping| &*tables.strings[tables.mappings[mapping as usize].file as usize]);
    let base = file.rsplit('/').next().unwrap_or_default();
    format!("{:#x}{}{base}", location.address, if base.is_empty() { "" } else { " in " }).into()
}
