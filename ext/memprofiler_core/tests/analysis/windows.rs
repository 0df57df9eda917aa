//! Samples that were taken in windows: read, written and combined.

use crate::maker::{LIMIT, Maker, Pprof, RETAINED, maker};
use crate::uninterrupted::{self as analysis, Profile};
use flate2::read::GzDecoder;
use prost::Message;
use std::io::Read;

const STACK: [&str; 1] = ["a /a.rb:1 1"];
const OBJECTS: &str = "retained_objects_windows";

/// One sample, with groups 0, 1 and 15 in the proportions 10:5:15.
fn one(values: &[i64; 2]) -> Maker {
    maker().sample(&STACK, None, values).number(OBJECTS, 0xf000_0000_0000_005a_u64 as i64)
}

/// Of each row: the number of its group, if it has one, and its values.
fn rows(profile: &Profile) -> Vec<(Option<usize>, Vec<i64>)> {
    let group = |row| profile.scheme(row).window.map(|window| window.number());
    let mut rows: Vec<_> = (0..profile.rows().len()).map(|row| (group(row), profile.values(row).to_vec())).collect();
    rows.sort();
    rows
}

fn values(profile: &Profile) -> Vec<Vec<i64>> {
    profile.samples().map(|sample| sample.values).collect()
}

fn written(profile: &Profile) -> Pprof {
    let mut plain = Vec::new();
    GzDecoder::new(&*analysis::write(profile, 1).unwrap()).read_to_end(&mut plain).unwrap();
    Pprof::decode(&*plain).unwrap()
}

/// The keys and numbers of all labels without a text, by sample.
fn numbers(message: &Pprof) -> Vec<Vec<(&str, i64)>> {
    let samples = message.sample.iter().map(|sample| {
        let labels = sample.label.iter().filter(|label| label.str == 0);
        labels.map(|label| (&*message.string_table[label.key as usize], label.num)).collect()
    });
    samples.collect()
}

#[test]
fn a_sample_is_a_row_for_each_group_and_still_one_sample_without_that_label() {
    let profile = one(&[30, 1201]).profile();
    let expected = [(Some(0), vec![10, 400]), (Some(1), vec![5, 201]), (Some(15), vec![15, 600])];
    assert_eq!(rows(&profile), expected);
    assert_eq!(values(&profile), [[30, 1201]]);
    let sample = profile.samples().next().unwrap();
    assert!(profile.tables().label_sets[sample.labels as usize].is_empty());
}

#[test]
fn columns_have_groups_of_their_own() {
    let types = [("allocations", "count"), ("allocations_size", "bytes"), RETAINED[0], RETAINED[1], ("time", "ns")];
    let profile = Maker::new(&types, &["greatest_weight=10"])
        .sample(&STACK, None, &[20, 800, 10, 400, 7])
        .number("allocations_windows", 0xff)
        .number(OBJECTS, 0xf0)
        .profile();
    let expected =
        [(None, vec![0, 0, 0, 0, 7]), (Some(0), vec![10, 400, 0, 0, 0]), (Some(1), vec![10, 400, 10, 400, 0])];
    assert_eq!(rows(&profile), expected);
    assert_eq!(rows(&analysis::decode(&analysis::write(&profile, 1).unwrap(), LIMIT).unwrap()), expected);
}

#[test]
fn what_is_written_has_one_sample_with_the_groups_in_a_label() {
    let profile = one(&[30, 1200]).profile();
    let message = written(&profile);
    assert_eq!(message.sample[0].value, [30, 1200]);
    assert_eq!(numbers(&message), [[(OBJECTS, 0xf000_0000_0000_005a_u64 as i64)]]);
    let again = analysis::decode(&analysis::write(&profile, 1).unwrap(), LIMIT).unwrap();
    assert_eq!(rows(&again), rows(&profile));
    assert_eq!(analysis::write(&again, 1).unwrap(), analysis::write(&one(&[30, 1200]).profile(), 1).unwrap());
}

#[test]
fn the_key_is_only_in_files_that_need_it() {
    let has_key = |message: Pprof| message.string_table.iter().any(|text| text == OBJECTS);
    let both = one(&[30, 1200]).sample(&["b /b.rb:1 1"], Some("B"), &[1, 1]).profile();
    assert!(has_key(written(&both)));
    let outside = both.filter_labels(|set| set != 0, &Default::default()).unwrap();
    assert_eq!(values(&outside), [[1, 1]]);
    assert!(!has_key(written(&outside)));
}

#[test]
fn a_stack_with_samples_of_both_kinds_is_written_as_two() {
    let both = one(&[30, 1200]).sample(&STACK, None, &[70, 700]).profile();
    assert_eq!(values(&both), [[100, 1900]]);
    let message = written(&both);
    assert_eq!(message.sample.iter().map(|sample| &*sample.value).collect::<Vec<_>>(), [[70, 700], [30, 1200]]);
    assert_eq!(numbers(&message).concat().len(), 1);
    assert_eq!(rows(&analysis::decode(&analysis::write(&both, 1).unwrap(), LIMIT).unwrap()), rows(&both));
}

#[test]
fn other_labels_of_that_name_are_labels_like_any_other() {
    let with = |change: fn(&mut Maker)| {
        let mut maker = one(&[30, 1200]);
        change(&mut maker);
        maker.profile()
    };
    let untouched = [
        with(|maker| (maker.0.sample[0].label[0].str, maker.0.sample[0].label[0].num) = (maker.string("x"), 0)),
        with(|maker| maker.0.sample[0].label[0].num_unit = maker.string("bytes")),
        with(|maker| maker.0.sample[0].label[0].num = 0),
        // Says nothing about weights.
        with(|maker| maker.0.comment.clear()),
    ];
    for profile in untouched {
        assert_eq!(rows(&profile), [(None, vec![30, 1200])]);
        let sample = profile.samples().next().unwrap();
        assert_eq!(profile.tables().label_sets[sample.labels as usize].len(), 1);
        assert_eq!(analysis::decode(&analysis::write(&profile, 1).unwrap(), LIMIT).unwrap(), profile);
    }
}
