//! Samples that were taken in windows: read, written and combined.

use crate::maker::{LIMIT, Maker, Pprof, RETAINED, maker, recursive, written};
use crate::uninterrupted::{self as analysis, By, Estimator, Profile, Sum, TreeOptions};
use memprofiler_core::interrupt::Interrupt;

const STACK: [&str; 1] = ["a /a.rb:1 1"];
const OBJECTS: &str = "retained_objects_windows";

/// One sample, with groups 0, 1 and 15 in the proportions 10:5:15.
fn one(values: &[i64; 2]) -> Maker {
    maker().sample(&STACK, None, values).number(OBJECTS, 0xf000_0000_0000_005a_u64 as i64)
}

/// One sample, all of which is of one group.
fn of_group(group: u32, count: i64) -> Profile {
    maker().sample(&STACK, None, &[count, 40 * count]).number(OBJECTS, 1 << (4 * group)).profile()
}

fn total(profile: &Profile, column: usize) -> Sum {
    Estimator::new(profile, column).total(&Interrupt::default()).unwrap()
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
    assert_eq!(message.sample.iter().map(|sample| &*sample.value).collect::<Vec<_>>(), [[30, 1200], [70, 700]]);
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

#[test]
fn groups_do_not_count_for_equality() {
    assert_eq!(of_group(1, 10), of_group(2, 10));
    assert_ne!(of_group(1, 10), of_group(2, 11));
}

#[test]
fn one_sample_of_weight_w_has_the_variance_w_squared() {
    let sum = total(&of_group(3, 10), 0);
    assert_eq!((sum.variance(), sum.window_variance(), sum.samples), (100.0, 100.0, 1.0));
    assert_eq!(total(&of_group(3, 10), 1).variance(), 400.0 * 400.0);
}

#[test]
fn the_variance_of_a_sum_is_that_of_its_groups() {
    // 16/15 (8 (20 - 10)² + 8 (0 - 10)²), and 9 * 100 for what was not sampled in windows.
    let every_second = maker().sample(&STACK, None, &[160, 160]).number(OBJECTS, 0x0f0f_0f0f_0f0f_0f0f);
    let both = every_second.sample(&["b /b.rb:1 1"], None, &[100, 100]).profile();
    let sum = total(&both, 0);
    let close = |a: f64, b: f64| (a - b).abs() < 1e-6;
    assert!(close(sum.window_variance(), 1600.0 * 16.0 / 15.0) && close(sum.independent_variance, 900.0), "{sum:?}");
    assert!(close(sum.variance(), 900.0 + 1600.0 * 16.0 / 15.0));
}

#[test]
fn sums_add_up_the_same_groups() {
    let all: Vec<Profile> = (0..16).map(|group| of_group(group, 10)).collect();
    let merged = analysis::merge(&all[0], &all[1..].iter().collect::<Vec<_>>()).unwrap();
    assert_eq!((merged.sample_count(), total(&merged, 0).variance()), (1, 0.0));
    let twice = analysis::merge(&all[0], &[&all[0]]).unwrap();
    assert_eq!(total(&twice, 0).variance(), 20.0 * 20.0);
    // Sites and calls: two callers of one method, each with a sample of its own group.
    let calls = maker()
        .sample(&["m /m.rb:1 1", "a /a.rb:1 1", "x /x.rb:1 1"], None, &[10, 1])
        .number(OBJECTS, 0xf)
        .sample(&["m /m.rb:1 1", "b /b.rb:1 1", "x /x.rb:1 1"], None, &[10, 1])
        .number(OBJECTS, 0xf0)
        .profile();
    // 16/15 (2 (10 - 1.25)² + 14 (0 - 1.25)²).
    let of_both = 2800.0 / 15.0;
    let site = |name: &str| analysis::top(&calls, 0, By::Method).into_iter().find(|site| &*site.group.name == name);
    let variances = |name| site(name).map(|site| [site.flat, site.cumulative].map(|sum| sum.variance().round()));
    assert_eq!(variances("x"), Some([f64::round(of_both); 2]));
    assert_eq!((variances("m"), variances("a")), (Some([0.0, f64::round(of_both)]), Some([0.0, 100.0])));
    let options = TreeOptions { by: By::Method, classes: true, min_fraction: 0.0, max_depth: u32::MAX };
    assert_eq!(analysis::tree(&calls, 0, options).0[0].cumulative.variance().round(), of_both.round());
}

#[test]
fn what_both_sides_of_a_difference_have_cancels_out() {
    let shared = one(&[300, 1200]).profile();
    let more = analysis::merge(&shared, &[&of_group(1, 10), &of_group(7, 20)]).unwrap();
    let difference = analysis::diff(&more, &analysis::merge(&shared, &[&of_group(2, 10)]).unwrap()).unwrap();
    let sum = total(&difference, 0);
    // 16/15 (10² + 20² + 10² - 20²/16).
    assert_eq!((sum.value, sum.variance().round()), (20, f64::round(16.0 / 15.0 * 575.0)));
    assert_eq!(total(&analysis::diff(&more, &more).unwrap(), 0).variance(), 0.0);
}

#[test]
fn a_flame_graph_has_the_shares_of_the_groups() {
    let profile = one(&[30, 1200]).sample(&["b /b.rb:1 1"], None, &[100, 4000]).profile();
    let graph: serde_json::Value =
        serde_json::from_str(&analysis::flamegraph(&[&profile], By::Method, 0.0).unwrap()).unwrap();
    let objects = &graph["values"][0][0];
    assert_eq!(objects["windows"], serde_json::json!({ "value": [30.0, 0.0], "packed": ["f00000000000005a", "0"] }));
    assert_eq!(objects["variance"], serde_json::json!([0.0, 900.0]));
    let without = analysis::flamegraph(&[&recursive()], By::Method, 0.0).unwrap();
    assert!(!without.contains("windows"));
}
