//! The bytes of a flush: equal samples give equal bytes, the same as in earlier versions.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a failure")]

use flate2::read::GzDecoder;
use memprofiler_core::interrupt::Interrupt;
use memprofiler_core::pprof;
use memprofiler_core::profile::{
    Builder, EMPTY_STACK, Function, Header, Label, LabelValue, Line, Location, Mapping, Profile, Row, Scheme, ValueType,
};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

/// Samples of 40 stacks that share their outer frames, with several classes, ages and labels, in no particular order,
/// as a flush builds them. Some are equal, some are 0.
fn profile(header: &Header) -> Profile {
    let mut builder = Builder::new();
    let mut stacks = vec![EMPTY_STACK];
    for step in 0..40_u32 {
        let name = builder.string(&Arc::from(format!("Class{}#method{}", step % 3, step % 7)));
        let file = builder.string(&Arc::from(format!("/app/file{}.rb", step % 3)));
        let start_line = if step % 5 == 0 { 0 } else { i64::from(step % 7 + 1) };
        let function = builder.function(Function { name, system_name: 0, file, start_line });
        let lines = Arc::new([Line { function, line: i64::from(300 + step % 11), column: 0 }]);
        let location = builder.location(&Location { mapping: Some(0), address: 0, folded: false, lines });
        stacks.push(builder.extend(stacks[step as usize / 2], location));
    }
    let mut label = |key: &str, value: &str| {
        let [key, value] = [key, value].map(|text| builder.string(&Arc::from(text)));
        Label { key, value: LabelValue::Text(value) }
    };
    let users = [label("endpoint", "users#show"), label("thread", "worker")];
    let shop = [label("class", "shop"), users[1], users[0]];
    let nothing = [label("endpoint", ""), users[1]];
    let labels = [&[][..], &users, &shop, &nothing];
    let mut string = |text: &str| builder.string(&Arc::from(text));
    let classes = ["String", "Hash", "Array"].map(&mut string);
    for value_type in header.sample_types.iter().chain(&header.period_type) {
        string(&value_type.name);
        string(&value_type.unit);
    }
    let [class, age, unit, file] = ["class", "gc_age", "collections", "ruby"].map(string);
    builder.mapping(Mapping { start: 0, limit: 0, offset: 0, file, build_id: 0, has: [true, true, true, false] });
    let mut sums: BTreeMap<_, [f64; 4]> = BTreeMap::new();
    for step in 0..300_usize {
        let class = (step % 4 > 0).then(|| classes[step % 3]);
        let age = (step % 5 > 2).then_some(8 >> (step % 3));
        let [allocations, retained] = if step % 9 == 0 { [0.2, 0.0] } else { [step as f64 * 1.4, 1e6 / step as f64] };
        let values = [allocations, allocations * 40.0, retained, retained * 64.5];
        let sum = sums.entry((class, age, step % 4, stacks[step * 17 % 41])).or_default();
        sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    let scheme = builder.scheme(Scheme::of(header));
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    for ((class_name, collections, number, stack), sum) in sums {
        let class_name = class_name.map(|name| Label { key: class, value: LabelValue::Text(name) });
        let collections = collections.map(|count| Label { key: age, value: LabelValue::Number(count, unit) });
        let set: Vec<Label> = class_name.into_iter().chain(collections).chain(labels[number].iter().copied()).collect();
        rows.push(Row::new(stack, builder.label_set(&set), scheme));
        values.extend(sum.map(|value| value.round() as i64));
    }
    builder.finish(header, &rows, &values, &Interrupt::default()).unwrap()
}

#[test]
fn the_same_samples_give_the_same_bytes() {
    let header = Header {
        time_nanos: 1_700_000_000_000_000_000,
        duration_nanos: 0,
        sample_types: [
            ("alloc_objects", "count"),
            ("alloc_space", "bytes"),
            ("inuse_objects", "count"),
            ("inuse_space", "bytes"),
        ]
        .map(|(name, unit)| ValueType::new(name, unit))
        .to_vec(),
        default_sample_type: "inuse_space".into(),
        period_type: Some(ValueType::new("space", "bytes")),
        period: 100,
        comments: vec!["hello".into(), "bytes".into()],
        ..Header::default()
    };
    let mut plain = Vec::new();
    GzDecoder::new(&*pprof::write_whole(&profile(&header), 2).unwrap()).read_to_end(&mut plain).unwrap();
    assert!(plain == include_bytes!("data/flush.pprof"));
}
