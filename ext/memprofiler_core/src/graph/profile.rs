//! The paths of an answer as a profile.

use super::answer::{Answer, PathTree};
use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::{
    Builder, EMPTY_STACK, Function, Header, Label, LabelValue, Line, Location, Mapping, Profile, Rounding, Row, Scheme,
    ValueType,
};
use crate::window_group::WindowGroup;
use std::sync::Arc;

const TYPES: [(&str, &str); 2] = [("retained_objects", "count"), ("retained_size", "bytes")];

/// The paths of an answer as a profile: the stack of a sample is the path, with the root outermost; its values are
/// `retained_objects` and `retained_size`, and its labels the `class` of the objects and the `site` that allocated
/// them. Equal answers give equal profiles. The comments get a `greatest_weight` if they have none.
pub fn profile(
    answer: &Answer,
    time_nanos: i64,
    comments: &[Arc<str>],
    interrupt: &Interrupt,
) -> Result<Profile, Interrupted> {
    let header = header(answer, time_nanos, comments);
    let mut builder = Builder::new();
    let [class_key, site_key] = ["class", "site"].map(|key| builder.string(&Arc::from(key)));
    let file = builder.string(&Arc::from("ruby"));
    builder.mapping(Mapping { start: 0, limit: 0, offset: 0, file, build_id: 0, has: [true, true, true, false] });
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    let mut rounding = Rounding::default();
    let stacks = stacks(&mut builder, &answer.paths, interrupt)?;
    for (number, path) in answer.paths.paths.iter().enumerate() {
        interrupt.at(number)?;
        let stack = path.end.map_or(EMPTY_STACK, |end| stacks[end as usize]);
        let text = |text: &str, builder: &mut Builder| LabelValue::Text(builder.string(&Arc::from(text)));
        let class = Label { key: class_key, value: text(&path.class, &mut builder) };
        let site = Label { key: site_key, value: text(&path.site, &mut builder) };
        let labels = builder.label_set(&[class, site]);
        let window = path.window.map(|number| WindowGroup::new(number.into()));
        rows.push(Row::new(stack, labels, builder.scheme(Scheme::of(&header).within(window))));
        values.extend(rounding.next([path.objects, path.bytes]));
    }
    builder.finish(&header, &rows, &values, interrupt)
}

fn header(answer: &Answer, time_nanos: i64, comments: &[Arc<str>]) -> Header {
    let mut comments = comments.to_vec();
    if !comments.iter().any(|comment| comment.starts_with("greatest_weight=")) {
        comments.push(format!("greatest_weight={}", answer.greatest_weight).into());
    }
    Header {
        sample_types: TYPES.map(|(name, unit)| ValueType::new(name, unit)).into(),
        default_sample_type: TYPES[1].0.into(),
        time_nanos,
        comments,
        ..Header::default()
    }
}

/// The stack of each node of the tree.
fn stacks(builder: &mut Builder, tree: &PathTree, interrupt: &Interrupt) -> Result<Vec<u32>, Interrupted> {
    let mut locations = Vec::with_capacity(tree.frames.len());
    for (number, frame) in tree.frames.iter().enumerate() {
        interrupt.at(number)?;
        let [name, file] = [&frame.name, &frame.file].map(|text| builder.string_or(text, || text.as_str().into()));
        let function = builder.function(Function { name, system_name: 0, file, start_line: frame.line });
        let lines = Arc::new([Line { function, line: frame.line, column: 0 }]);
        locations.push(builder.location(&Location { mapping: Some(0), address: 0, folded: false, lines }));
    }
    let mut stacks: Vec<u32> = Vec::with_capacity(tree.nodes.len());
    for &(before, frame) in &tree.nodes {
        let before = before.map_or(EMPTY_STACK, |before| stacks[before as usize]);
        stacks.push(builder.extend(before, locations[frame as usize]));
    }
    Ok(stacks)
}
