//! Valid profiles: what is written reads back the same, and sums equal those of a plain loop.

#![no_main]

mod work;

use arbitrary::Arbitrary;
use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use memprofiler_core::analysis::{self, By};
use memprofiler_core::interrupt::Interrupt;
use memprofiler_core::pprof::message as wire;
use memprofiler_core::pprof::{self, DecodeError};
use memprofiler_core::profile::{self, Profile};
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use work::{bounded, most};

/// Numbers are reduced modulo the size of what they index.
#[derive(Debug, Arbitrary)]
struct Input {
    gzipped: bool,
    functions: Vec<(u8, u8)>,
    locations: Vec<Vec<(u8, i64)>>,
    samples: Vec<Sample>,
    sparse_ids: bool,
    time: i64,
    weight: Option<f64>,
}

#[derive(Debug, Arbitrary)]
struct Sample {
    stack: Vec<u8>,
    values: (i32, i32),
    labels: Vec<(u8, Result<u8, (i64, u8)>)>,
}

#[derive(Clone, PartialEq, Message)]
struct Outermost {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<wire::ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<wire::Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<wire::Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<wire::Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
}

const STRINGS: [&str; 13] = [
    "",
    "retained_objects",
    "count",
    "retained_size",
    "bytes",
    "class",
    "retained_objects_windows",
    "a",
    "b;c",
    "<main>",
    "/a.rb",
    "/gems/x-1/b.rb",
    "é",
];

fn message(input: &Input) -> Outermost {
    let string = |byte: u8| i64::from(byte) % STRINGS.len() as i64;
    let id = |position: usize| if input.sparse_ids { position as u64 * 1000 + 7 } else { position as u64 + 1 };
    let functions = input.functions.len();
    let locations = if functions == 0 { 0 } else { input.locations.len() };
    let mut message = Outermost {
        sample_type: vec![wire::ValueType { r#type: 1, unit: 2 }, wire::ValueType { r#type: 3, unit: 4 }],
        string_table: STRINGS.map(str::to_owned).to_vec(),
        time_nanos: input.time,
        ..Outermost::default()
    };
    if let Some(weight) = input.weight {
        message.comment.push(message.string_table.len() as i64);
        message.string_table.push(format!("greatest_weight={weight}"));
    }
    for (position, &(name, file)) in input.functions.iter().enumerate() {
        // Functions with a first line are identified by name and file.
        let (name, filename) = (string(name), string(file));
        message.function.push(wire::Function { id: id(position), name, filename, start_line: 1, ..Default::default() });
    }
    for (position, lines) in input.locations[..locations].iter().enumerate() {
        let line = lines.iter().map(|&(function, line)| wire::Line {
            function_id: id(usize::from(function) % functions),
            line,
            column: 0,
        });
        let address = if lines.is_empty() { position as u64 + 1 } else { 0 };
        message.location.push(wire::Location { id: id(position), address, line: line.collect(), ..Default::default() });
    }
    for Sample { stack, values, labels } in &input.samples {
        let stack = if locations == 0 { &[][..] } else { stack };
        let label = labels.iter().map(|&(key, value)| match value {
            Ok(text) => wire::Label { key: string(key), str: string(text), num: 0, num_unit: 0 },
            Err((num, unit)) => wire::Label { key: string(key), str: 0, num, num_unit: string(unit) },
        });
        message.sample.push(wire::Sample {
            location_id: stack.iter().map(|&location| id(usize::from(location) % locations)).collect(),
            value: vec![values.0.into(), values.1.into()],
            label: label.collect(),
        });
    }
    message
}

/// Flat and cumulative sums of the first column by name and file; an address is a name of its own.
fn plain_sums(message: &Outermost) -> BTreeMap<(String, String), (i64, i64)> {
    let locations: BTreeMap<u64, &wire::Location> = message.location.iter().map(|each| (each.id, each)).collect();
    let functions: BTreeMap<u64, &wire::Function> = message.function.iter().map(|each| (each.id, each)).collect();
    let string = |index: i64| message.string_table[index as usize].clone();
    let mut sums: BTreeMap<(String, String), (i64, i64)> = BTreeMap::new();
    for sample in &message.sample {
        let mut frames = Vec::new();
        for id in &sample.location_id {
            let location = locations[id];
            if location.line.is_empty() {
                frames.push((format!("{:#x}", location.address), String::new()));
            }
            for line in &location.line {
                let function = functions[&line.function_id];
                frames.push((string(function.name), string(function.filename)));
            }
        }
        if frames.is_empty() {
            frames.push(("(no stack)".into(), String::new()));
        }
        sums.entry(frames[0].clone()).or_default().0 += sample.value[0];
        for frame in frames.into_iter().collect::<BTreeSet<_>>() {
            sums.entry(frame).or_default().1 += sample.value[0];
        }
    }
    sums.retain(|_, &mut sums| sums != (0, 0));
    sums
}

fn sums(profile: &Profile) -> BTreeMap<(String, String), (i64, i64)> {
    let sites = analysis::top(profile, 0, By::Method, &Interrupt::default()).expect("nobody interrupts").into_iter();
    sites
        .map(|site| {
            let file = site.group.file.map_or(String::new(), |file| file.to_string());
            ((site.group.name.to_string(), file), (site.flat.value, site.cumulative.value))
        })
        .collect()
}

fuzz_target!(|input: Input| {
    let message = message(&input);
    let never = &Interrupt::default();
    let mut bytes = message.encode_to_vec();
    let (once, double) = (most(bytes.len() as u64, 1), most(bytes.len() as u64, 2));
    if input.gzipped {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&bytes).expect("writing to a Vec cannot fail");
        bytes = gzip.finish().expect("writing to a Vec cannot fail");
    }
    let profile = match bounded("decode", once, || pprof::decode(&bytes, 1 << 26, never)) {
        Err(DecodeError::Expands(_)) => return,
        result => result.expect("the profile is valid"),
    };
    let written = bounded("write", once, || pprof::write(&profile, 1, never)).expect("a profile can be written");
    match pprof::decode(&written, 1 << 26, never) {
        // What was left out may have made the profile long enough for its frames or names.
        Err(DecodeError::Expands(_)) => {}
        result => assert_eq!(result.expect("what was written can be read"), profile),
    }
    assert_eq!(bounded("top", once, || sums(&profile)), plain_sums(&message));

    let twice = bounded("merge", double, || profile::merge(&profile, &[&profile], never));
    let twice = twice.expect("equal types can be merged");
    assert_eq!(twice.sample_count(), profile.sample_count());
    let minus = |more: &Profile| {
        let difference = bounded("diff", double, || profile::diff(more, &profile, never));
        difference.expect("equal types can be subtracted")
    };
    assert_eq!(minus(&minus(&twice)).sample_count(), 0);
});
