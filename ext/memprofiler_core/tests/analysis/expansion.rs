//! Profiles that would expand to far more than their size.

use crate::maker::{LIMIT, Maker, RETAINED, maker, maker_of_one};
use crate::uninterrupted::{self as analysis, By, TreeOptions};
use memprofiler_core::pprof::message;
use prost::Message;

fn error(maker: &Maker) -> String {
    analysis::decode(&maker.0.encode_to_vec(), LIMIT).map(|_| "no error").unwrap_err().to_string()
}

/// One location that stands for `inlined` functions, in a stack of `depth` calls.
fn inlined(inlined: usize, depth: usize) -> Maker {
    let mut maker = maker_of_one();
    maker.0.location[0].line = vec![maker.0.location[0].line[0]; inlined];
    maker.0.sample[0].location_id = vec![1; depth];
    maker
}

#[test]
fn inlined_functions_are_refused_where_they_would_be_millions_of_frames() {
    let maker = inlined(2_000, 2_000);
    let bytes = maker.0.encoded_len();
    assert!(bytes < 20_000);
    let most = (1 << 17) + 16 * bytes;
    let expected = format!(
        "its {bytes} bytes expand to 4000000 frames with inlined functions, at most {most} are allowed for this size"
    );
    assert_eq!(error(&maker), expected);
}

#[test]
fn each_sample_counts_the_frames_of_its_stack() {
    // Two frames per sample, one of which stands for the same 1,000 functions.
    let mut maker = inlined(1_000, 1).sample(&["b /b.rb:1 1"], None, &[1, 1]);
    maker.0.sample = (0..1_000)
        .map(|number| message::Sample {
            location_id: vec![2, 1],
            value: vec![1, 1],
            label: vec![message::Label { key: 1, num: number + 1, ..Default::default() }],
        })
        .collect();
    assert!(error(&maker).contains("expand to 1001000 frames"));
}

#[test]
fn so_does_a_sample_of_which_nothing_is_left() {
    let mut nothing = inlined(2_000, 2_000);
    nothing.0.sample[0].value = vec![0, 0];
    assert!(error(&nothing).contains("expand to 4000000 frames"));
}

#[test]
fn the_allowed_number_of_frames_is_read_and_written() {
    let deep = |depth| inlined(500, depth);
    let most = |maker: &Maker| (1 << 17) + 16 * maker.0.encoded_len();
    let depth = (1..).take_while(|&depth| 500 * depth <= most(&deep(depth))).last().unwrap();
    assert!(error(&deep(depth + 1)).contains("frames with inlined functions"));
    let profile = deep(depth).profile();
    let options = TreeOptions { by: By::Method, classes: false, min_fraction: 0.0, max_depth: u32::MAX };
    assert_eq!(analysis::tree(&profile, 0, options).0.len(), 500 * depth + 1);
    // A merged profile may expand to as much as both together.
    assert_eq!(analysis::merge(&profile, &[&profile]).unwrap().sample_count(), 1);
}

#[test]
fn long_names_are_refused_where_they_would_be_gigabytes() {
    let long = "x".repeat(100_000);
    let mut calls = maker().sample(&[&format!("{long} /a.rb:1 1")], None, &[1, 1]);
    calls.0.sample[0].location_id = vec![1; 100_000];
    let mut comments = Maker::new(&RETAINED, &[&long]);
    comments.0.comment = vec![comments.0.comment[0]; 10_000];
    let mut functions = maker_of_one();
    let (name, function) = (functions.string(&long), functions.0.function[0]);
    functions.0.function.extend((2..10_000).map(|id| message::Function {
        id,
        name,
        start_line: id as i64,
        ..function
    }));
    let mut mappings = maker_of_one();
    let filename = mappings.string(&long);
    mappings.0.mapping = vec![message::Mapping { id: 1, filename, ..Default::default() }];
    mappings.0.location =
        (1..10_000).map(|id| message::Location { id, mapping_id: 1, address: id, ..Default::default() }).collect();
    let mut labels = maker();
    let (key, value) = (labels.string("class"), labels.string(&long));
    labels.0.sample = (0..10_000)
        .map(|num| message::Sample {
            value: vec![1, 1],
            label: vec![
                message::Label { key, str: value, ..Default::default() },
                message::Label { key, num: num + 1, ..Default::default() },
            ],
            ..Default::default()
        })
        .collect();
    for maker in [calls, comments, functions, mappings, labels] {
        assert!(error(&maker).contains("bytes of names, at most "));
    }
}

#[test]
fn more_sample_types_than_are_ever_used_are_refused() {
    let types = |count| {
        let mut maker = maker();
        maker.0.sample_type = vec![message::ValueType { r#type: 1, unit: 2 }; count];
        maker
    };
    assert!(error(&types(65)).contains("sample types: there are 65, at most 64 are allowed"));
    assert_eq!(types(64).profile().header().sample_types.len(), 64);
}

#[test]
fn comments_without_number_are_refused() {
    let comments = |count| {
        let mut maker = maker();
        maker.0.comment = vec![0; count];
        maker
    };
    assert!(error(&comments((1 << 20) + 1)).contains("comments: there are 1048577, at most 1048576 are allowed"));
    assert_eq!(comments(1 << 10).profile().header().comments.len(), 1 << 10);
}

#[test]
fn windows_are_told_apart_only_where_there_are_few_columns() {
    // A label of some bytes makes 16 rows of a sample.
    let rows = |columns| {
        let types = vec![RETAINED[0]; columns];
        let profile = Maker::new(&types, &["greatest_weight=10"])
            .sample(&["a /a.rb:1 1"], None, &vec![16; columns])
            .number("retained_objects_windows", -1)
            .profile();
        let labels = profile.samples().map(|sample| profile.tables().label_sets[sample.labels as usize].len());
        (profile.rows().len(), labels.collect::<Vec<_>>())
    };
    assert_eq!([rows(1), rows(8)], [(16, vec![0]), (17, vec![0])]);
    assert_eq!([rows(9), rows(64)], [(1, vec![1]), (1, vec![1])]);
}

#[test]
fn table_entries_of_unusual_length_are_refused() {
    let mut maker = maker_of_one();
    maker.0.location[0].line = vec![message::Line { function_id: 1, line: 1, column: 0 }; 200_000];
    assert!(error(&maker).contains("location 0 at byte") && error(&maker).contains("at most 1048576 are allowed"));
}

/// Deeper stacks and longer names than programs have: even such profiles need not be measured, let alone refused.
#[test]
fn deep_stacks_of_long_names_are_accepted() {
    let mut maker = Maker::new(&RETAINED, &[]);
    for function in 0..100 {
        let frame = format!("{}{function} /{}.rb:1 1", "Module::".repeat(30), "directory/".repeat(30));
        maker = maker.sample(&[&*frame], None, &[1, 1]);
    }
    maker.0.sample = (0..2_000)
        .map(|sample: u64| message::Sample {
            location_id: (0..1_000).map(|frame| (sample + frame) % 100 + 1).collect(),
            value: vec![1, 1],
            ..Default::default()
        })
        .collect();
    let profile = maker.profile();
    let others = vec![&profile; 20];
    let merged = analysis::merge(&profile, &others).unwrap();
    assert_eq!(analysis::folded(&merged, 0).lines().count(), 100);
}
