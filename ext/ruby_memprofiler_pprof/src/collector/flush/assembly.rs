//! Builds the profile from what a flush has copied out.

use super::extract::{NamedFrame, NamedSample, What};
use crate::collector::sample_types::Values;
use crate::vm::names::FunctionName;
use memprofiler_core::hash::Map;
use memprofiler_core::interrupt::{Interrupt, Interrupted};
use memprofiler_core::labels::LabelSet;
use memprofiler_core::profile::{
    Builder, EMPTY_STACK, Function, Header, Label, LabelValue, Line, Location, Mapping, Profile, Row, Scheme,
};
use memprofiler_core::table::Table;
use memprofiler_core::window_group::WindowGroup;
use std::sync::Arc;

/// The number of the only mapping.
const PROGRAM: u32 = 0;

/// The key of a sample. Its order determines the numbers of label sets, and thus the order of the samples of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    class: Option<u32>,
    age: Option<u32>,
    /// Index into the stacks' labels.
    labels: Option<u32>,
    stack: u32,
    /// Rows that differ in nothing else are one sample.
    window: Option<WindowGroup>,
}

/// Rounds the values of a sample's rows, one row after another, so that their sums are rounded only once: rounding each
/// row by itself would be biased, since the samples of a window all stand for about the same number of objects.
#[derive(Default)]
struct Rounding {
    exact: [f64; 4],
    rounded: [i64; 4],
}

impl Rounding {
    fn next(&mut self, values: [f64; 4]) -> [i64; 4] {
        std::array::from_fn(|column| {
            self.exact[column] += values[column];
            let rounded = self.exact[column].round() as i64;
            rounded - std::mem::replace(&mut self.rounded[column], rounded)
        })
    }
}

/// Turns named samples into numbered ones.
#[derive(Default)]
pub struct Assembly {
    builder: Builder,
    /// For each frame its stack, and the labels below it.
    stacks: Vec<(u32, Option<u32>)>,
    /// By function, identified by its address, and line.
    locations: Map<(*const FunctionName, u32), u32>,
    labels: Table<Vec<Label>>,
    samples: Map<Key, Values>,
}

impl Assembly {
    /// Adds a frame whose caller was already added.
    pub fn frame(&mut self, NamedFrame { caller, what }: &NamedFrame) {
        let (stack, labels) = self.stack(*caller);
        let extended = match what {
            What::Line(function, line) => {
                let location = self.location(function, *line);
                (self.builder.extend(stack, location), labels)
            }
            What::Labels(own) => (stack, Some(self.labels(own, labels))),
        };
        self.stacks.push(extended);
    }

    /// Adds a sample whose frames were already added.
    pub fn sample(&mut self, NamedSample { stack, class, age, window, values }: NamedSample) {
        let (stack, labels) = self.stack(stack);
        let class = class.map(|class| self.builder.string(&class));
        *self.samples.entry(Key { class, age, labels, stack, window }).or_default() += values;
    }

    fn stack(&self, frame: Option<u32>) -> (u32, Option<u32>) {
        frame.map_or((EMPTY_STACK, None), |frame| self.stacks[frame as usize])
    }

    fn location(&mut self, function: &Arc<FunctionName>, line: u32) -> u32 {
        let builder = &mut self.builder;
        *self.locations.entry((Arc::as_ptr(function), line)).or_insert_with(|| {
            let (name, file) = (builder.string(&function.name), builder.string(&function.file));
            let start_line = function.start_line.into();
            let function = builder.function(Function { name, system_name: 0, file, start_line });
            let lines = Arc::new([Line { function, line: line.into(), column: 0 }]);
            builder.location(&Location { mapping: Some(PROGRAM), address: 0, folded: false, lines })
        })
    }

    /// The number of a set of labels, extended by those of `outer` with other keys.
    fn labels(&mut self, own: &LabelSet, outer: Option<u32>) -> u32 {
        let mut labels: Vec<Label> = Vec::with_capacity(own.pairs().len());
        for (key, value) in own.pairs() {
            let (key, value) = (self.builder.string(key), LabelValue::Text(self.builder.string(value)));
            labels.push(Label { key, value });
        }
        if let Some(outer) = outer {
            let outer = &self.labels.values()[outer as usize];
            let more = outer.iter().filter(|outer| labels.iter().all(|label| label.key != outer.key));
            labels.extend(more.copied().collect::<Vec<_>>());
        }
        self.labels.id(&labels)
    }

    /// The profile. Strings are numbered in the order in which they are first used. Which ones are used must depend
    /// only on the samples and the header, so that equal ones give equal bytes.
    pub fn finish(self, header: &Header) -> Result<Profile, Interrupted> {
        let Self { mut builder, labels: of_stacks, samples, .. } = self;
        let mut string = |text: &str| builder.string_or(text, || text.into());
        for value_type in header.sample_types.iter().chain(&header.period_type) {
            string(&value_type.name);
            string(&value_type.unit);
        }
        let [class_key, age_key, age_unit] = ["class", "gc_age", "collections"].map(&mut string);
        let file = string("ruby");
        let has = [true, true, true, false];
        builder.mapping(Mapping { start: 0, limit: 0, offset: 0, file, build_id: 0, has });

        let scheme = Scheme::of(header);
        let mut samples: Vec<(Key, Values)> = samples.into_iter().collect();
        samples.sort_unstable_by_key(|&(key, _)| key);
        let mut rows = Vec::with_capacity(samples.len());
        let mut values = Vec::with_capacity(samples.len() * header.sample_types.len());
        let mut set = Vec::new();
        let (mut rounding, mut last) = (Rounding::default(), None);
        for (key, sums) in samples {
            let Key { class, age, labels, stack, window } = key;
            if last.replace(Key { window: None, ..key }) != Some(Key { window: None, ..key }) {
                rounding = Rounding::default();
            }
            set.clear();
            set.extend(class.map(|class| Label { key: class_key, value: LabelValue::Text(class) }));
            set.extend(age.map(|age| Label { key: age_key, value: LabelValue::Number(age.into(), age_unit) }));
            set.extend(labels.iter().flat_map(|&number| &of_stacks.values()[number as usize]));
            let (labels, scheme) = (builder.label_set(&set), builder.scheme(scheme.within(window)));
            rows.push(Row { stack, labels, scheme });
            values.extend(rounding.next(sums.columns()));
        }
        builder.finish(header, &rows, &values, &Interrupt::default())
    }
}
