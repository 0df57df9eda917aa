//! Builds the profile from what a flush has copied out.

use super::extract::{Extract, Key, LABELS};
use crate::collector::sample_types::Columns;
use crate::vm::names::FunctionName;
use memprofiler_core::hash::FixedState;
use memprofiler_core::id_index::IdIndex;
use memprofiler_core::interrupt::Interrupted;
use memprofiler_core::labels::LabelSet;
use memprofiler_core::profile::{
    Builder, Frame, Function, Header, Label, LabelValue, Line, Location, Mapping, Profile, Rounding, Row, Scheme,
};
use memprofiler_core::stratum::Stratum;
use memprofiler_core::sums::Sums;
use memprofiler_core::table::Table;
use std::hash::BuildHasher;
use std::sync::Arc;

/// The number of the only mapping.
const PROGRAM: u32 = 0;

/// The key of a sample. Its order determines the order of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SampleKey {
    stack: u32,
    /// The number of the set.
    labels: u32,
    class: u32,
    age: Option<u32>,
    /// Rows that differ in nothing else are one sample.
    stratum: Stratum,
}

/// The profile of `sums`. Strings are numbered in the order in which they are first used. Which ones are used must
/// depend only on the samples and the header, so that equal ones give equal bytes.
pub fn profile<const N: usize, V: Columns<N>>(
    extract: Extract,
    sums: &Sums<Key, V>,
    header: &Header,
) -> Result<Profile, Interrupted> {
    let Extract { stacks, mut frames, places, labels, classes, index } = extract;
    drop(index);
    let mut builder = Builder::new();
    let mut string = |text: &str| builder.string_or(text, || text.into());
    for value_type in header.sample_types.iter().chain(&header.period_type) {
        string(&value_type.name);
        string(&value_type.unit);
    }
    let [class_key, age_key, age_unit] = ["class", "gc_age", "collections"].map(&mut string);
    let file = string("ruby");
    let has = [true, true, true, false];
    builder.mapping(Mapping { start: 0, limit: 0, offset: 0, file, build_id: 0, has });
    let locations: Vec<u32> = places.iter().map(|(function, line)| location(&mut builder, function, *line)).collect();
    let (sets, set_of) = resolve(&mut builder, &mut frames, &locations, &labels);

    let key = |&position: &u32| {
        let (&stack, key) = (stacks.get(position as usize)?, sums.key(position as usize)?);
        let labels = set_of.get(stack as usize).map_or(0, |&set| set);
        let stack = without_labels(&frames, stack);
        Some(SampleKey { stack, labels, class: key.class.0, age: key.age, stratum: key.stratum })
    };
    let mut order: Vec<u32> = (0..sums.len() as u32).collect();
    order.sort_unstable_by_key(key);
    let scheme = Scheme::of(header);
    let mut rows = Vec::with_capacity(order.len());
    let mut values = Vec::with_capacity(order.len() * header.sample_types.len());
    let mut set = Vec::new();
    let (mut rounding, mut last) = (Rounding::<N>::default(), None);
    for same in order.chunk_by(|a, b| key(a) == key(b)) {
        let Some(key) = key(&same[0]) else { continue };
        let sample = SampleKey { stratum: Stratum::ONLY, ..key };
        if last.replace(sample) != Some(sample) {
            set.clear();
            let class = classes.get(key.class as usize).map(|name| LabelValue::Text(builder.string(name)));
            set.extend(class.map(|value| Label { key: class_key, value }));
            let age = key.age.map(|age| LabelValue::Number(age.into(), age_unit));
            set.extend(age.map(|value| Label { key: age_key, value }));
            set.extend(&sets[key.labels as usize]);
        }
        let mut sum = V::default();
        same.iter().filter_map(|&position| sums.entry(position as usize)).for_each(|(_, values)| sum += values);
        let rounded = rounding.next(sum.columns());
        if rounded != [0; N] {
            let (labels, scheme) = (builder.label_set(&set), builder.scheme(scheme.within(key.stratum.window())));
            rows.push(Row { magnitude: key.stratum.magnitude(), ..Row::new(key.stack, labels, scheme) });
            values.extend(rounded);
        }
    }
    builder.finish_with(header, frames, rows, values)
}

fn location(builder: &mut Builder, function: &FunctionName, line: u32) -> u32 {
    let (name, file) = (builder.string(&function.name), builder.string(&function.file));
    let start_line = function.start_line.into();
    let function = builder.function(Function { name, system_name: 0, file, start_line });
    let lines = Arc::new([Line { function, line: line.into(), column: 0 }]);
    builder.location(&Location { mapping: Some(PROGRAM), address: 0, folded: false, lines })
}

/// The stack itself, or the equal one, with other labels, that stands for it.
fn without_labels(frames: &[Frame], stack: u32) -> u32 {
    let frame = frames[stack as usize];
    if frame.location & LABELS == 0 { stack } else { frame.caller }
}

/// Gives frames the locations and callers that they have in the profile; equal stacks with different labels become one:
/// the location of the others is [`LABELS`]. Returns the distinct sets of labels, the first
/// of them empty, and for each frame the number of its set; or nothing if all are empty.
fn resolve(
    builder: &mut Builder,
    frames: &mut [Frame],
    locations: &[u32],
    labels: &[Arc<LabelSet>],
) -> (Vec<Vec<Label>>, Vec<u32>) {
    let mut sets = Table::<Vec<Label>>::default();
    sets.id(&Vec::new());
    let mut numbers = if labels.is_empty() { Vec::new() } else { vec![0; frames.len()] };
    let (mut known, hasher) = (IdIndex::new(), FixedState::default());
    for number in 1..frames.len() {
        let Frame { caller, location } = frames[number];
        let outer = numbers.get(caller as usize).map_or(0, |&set| set);
        frames[number].caller = without_labels(frames, caller);
        let set = match labels.get((location ^ LABELS) as usize) {
            Some(own) => {
                let set = extended(builder, own, &sets.values()[outer as usize]);
                sets.id(&set)
            }
            None => {
                frames[number].location = locations[location as usize];
                if !labels.is_empty() {
                    let hash_of = |id: u32| hasher.hash_one(frames[id as usize]);
                    let hash = hash_of(number as u32);
                    match known.find(hash, |id| frames[id as usize] == frames[number]) {
                        Some(same) => frames[number] = Frame { caller: same, location: LABELS },
                        None => known.insert(hash, number as u32, hash_of),
                    }
                }
                outer
            }
        };
        if let Some(number) = numbers.get_mut(number) {
            *number = set;
        }
    }
    (sets.into_values(), numbers)
}

/// A set of labels, extended by those of `outer` with other keys.
fn extended(builder: &mut Builder, own: &LabelSet, outer: &[Label]) -> Vec<Label> {
    let mut set: Vec<Label> = Vec::with_capacity(own.pairs().len() + outer.len());
    for (key, value) in own.pairs() {
        let (key, value) = (builder.string(key), LabelValue::Text(builder.string(value)));
        set.push(Label { key, value });
    }
    let keys = set.len();
    for label in outer {
        if set[..keys].iter().all(|own| own.key != label.key) {
            set.push(*label);
        }
    }
    set
}
