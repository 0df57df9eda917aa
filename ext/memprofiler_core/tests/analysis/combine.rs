//! Merging and comparing profiles.

use crate::maker::{LIMIT, Maker, RETAINED, maker, maker_of_one, names, recursive, refused};
use crate::uninterrupted::{self as analysis, By, Profile, Sum};
use memprofiler_core::interrupt::Interrupt;

#[test]
fn merging_adds_samples_and_durations_and_keeps_the_earliest_time() {
    let (mut first, mut second) = (maker_of_one(), maker_of_one());
    (first.0.time_nanos, first.0.duration_nanos) = (500, 7);
    (second.0.time_nanos, second.0.duration_nanos) = (300, 8);
    let second = second.sample(&["b /b.rb:1 1"], None, &[2, 80]);
    let merged = analysis::merge(&first.profile(), &[&second.profile(), &maker_of_one().profile()]).unwrap();
    assert_eq!(names(&merged), ["a 3", "b 2"]);
    assert_eq!((merged.header().time_nanos, merged.header().duration_nanos), (300, 15));
    let comments: Vec<&str> = merged.header().comments.iter().map(|comment| &**comment).collect();
    assert_eq!(comments, ["greatest_weight=10", "merged=3"]);
}

#[test]
fn a_sum_of_sums_says_of_how_many_profiles_it_is() {
    let two = analysis::merge(&maker_of_one().profile(), &[&maker_of_one().profile()]).unwrap();
    let five = analysis::merge(&two, &[&maker_of_one().profile(), &two]).unwrap();
    let comments: Vec<&str> = five.header().comments.iter().map(|comment| &**comment).collect();
    assert_eq!(comments, ["greatest_weight=10", "merged=5"]);
}

#[test]
fn merging_finds_columns_by_name() {
    let mut reversed = RETAINED;
    reversed.reverse();
    let other = Maker::new(&reversed, &[]).of_ruby().sample(&["a /a.rb:1 1"], None, &[40, 1]).profile();
    let merged = analysis::merge(&maker_of_one().profile(), &[&other]).unwrap();
    assert_eq!(merged.samples().map(|sample| sample.values).collect::<Vec<_>>(), [[2, 80]]);
}

#[test]
fn columns_of_the_same_type_are_matched_by_order() {
    let twice = [RETAINED[0], RETAINED[1], RETAINED[0]];
    let profile = Maker::new(&twice, &[]).sample(&["a /a.rb:1 1"], None, &[1, 40, 2]).profile();
    let merged = analysis::merge(&profile, &[&profile]).unwrap();
    assert_eq!(merged.samples().map(|sample| sample.values).collect::<Vec<_>>(), [[2, 80, 4]]);
}

#[test]
fn merging_refuses_another_count_of_one_type() {
    let (once, twice) = (&RETAINED[..2], [RETAINED[0], RETAINED[0]]);
    let refused = analysis::merge(&Maker::new(once, &[]).profile(), &[&Maker::new(&twice, &[]).profile()]);
    assert!(refused.is_err());
    let refused = analysis::merge(&Maker::new(&twice, &[]).profile(), &[&Maker::new(once, &[]).profile()]);
    assert!(refused.is_err());
}

#[test]
fn merging_refuses_other_sample_types() {
    let other = Maker::new(&RETAINED[..1], &[]).profile();
    let refused = refused(analysis::merge(&maker().profile(), &[&maker().profile(), &other]).unwrap_err());
    assert_eq!(refused.index, 1);
    let expected = "its sample types are retained_objects/count, not retained_objects/count, retained_size/bytes";
    assert_eq!(refused.to_string(), expected);
}

#[test]
fn merged_profiles_keep_the_weights_of_each() {
    let other = Maker::new(&RETAINED, &["greatest_weight=2"]).sample(&["a /a.rb:1 1"], None, &[100, 4000]);
    let both = analysis::merge(&maker().sample(&["a /a.rb:1 1"], None, &[100, 4000]).profile(), &[&other.profile()]);
    let total = analysis::Estimator::new(&both.unwrap(), 0).total(&Interrupt::default()).unwrap();
    assert_eq!(total, Sum { value: 200, independent_variance: 100.0 * 9.0 + 100.0, samples: 60.0, windows: None });
}

/// 100 samples of 40 bytes and 10 of 10,000 bytes, each standing for 10 objects, in two profiles.
fn merged_sizes() -> Profile {
    let few = maker().sample(&["a /a.rb:1 1"], None, &[100, 1_000_000]).profile();
    analysis::merge(&maker().sample(&["a /a.rb:1 1"], None, &[1000, 40_000]).profile(), &[&few]).unwrap()
}

const OF_MERGED_SIZES: Sum = Sum {
    value: 1_040_000,
    independent_variance: 9.0 * (1000.0 * 40.0 * 40.0 + 100.0 * 1e8),
    samples: 110.0,
    windows: None,
};

#[test]
fn merged_profiles_keep_the_errors_of_objects_of_different_sizes() {
    let merged = merged_sizes();
    assert_eq!(analysis::Estimator::new(&merged, 1).total(&Interrupt::default()).unwrap(), OF_MERGED_SIZES);
    assert_eq!(merged.samples().map(|sample| sample.values).collect::<Vec<_>>(), [[1100, 1_040_000]]);
}

#[test]
fn so_do_their_files() {
    let merged = merged_sizes();
    let read = analysis::decode(&analysis::write(&merged, 0).unwrap(), LIMIT).unwrap();
    assert_eq!(analysis::Estimator::new(&read, 1).total(&Interrupt::default()).unwrap(), OF_MERGED_SIZES);
    assert_eq!(read, merged);
}

#[test]
fn rows_with_sizes_of_one_magnitude_are_added_up() {
    let other = maker().sample(&["a /a.rb:1 1"], None, &[10, 600]).profile();
    let merged = analysis::merge(&maker().sample(&["a /a.rb:1 1"], None, &[10, 400]).profile(), &[&other]).unwrap();
    assert_eq!(merged.all_values(), [20, 1000]);
}

#[test]
fn a_difference_is_signed_and_has_the_errors_of_both() {
    let more = maker().sample(&["a /a.rb:1 1"], None, &[50, 2000]).sample(&["b /b.rb:1 1"], None, &[20, 800]);
    let base = maker().sample(&["a /a.rb:1 1"], None, &[80, 3200]).sample(&["b /b.rb:1 1"], None, &[20, 800]);
    let difference = analysis::diff(&more.profile(), &base.profile()).unwrap();
    assert_eq!(difference.samples().map(|sample| sample.values).collect::<Vec<_>>(), [[-30, -1200]]);
    let sites = analysis::top(&difference, 0, By::Method);
    assert_eq!(sites.len(), 1);
    assert_eq!(sites[0].flat, Sum { value: -30, independent_variance: 130.0 * 9.0, samples: 13.0, windows: None });
}

#[test]
fn a_difference_with_itself_is_empty() {
    let difference = analysis::diff(&recursive(), &recursive()).unwrap();
    assert_eq!(difference.sample_count(), 0);
    assert_eq!(analysis::top(&difference, 0, By::Method), []);
}

#[test]
fn overflowing_sums_saturate() {
    let profile = maker().sample(&["a /a.rb:1 1"], None, &[i64::MAX, i64::MIN]).profile();
    let merged = analysis::merge(&profile, &[&profile]).unwrap();
    assert_eq!(merged.samples().next().unwrap().values, [i64::MAX, i64::MIN]);
    let difference = analysis::diff(&maker().profile(), &profile).unwrap();
    assert_eq!(difference.samples().next().unwrap().values, [-i64::MAX, i64::MAX]);
    assert_eq!(analysis::top(&merged, 1, By::Method).len(), 1);
}

#[test]
fn merging_keeps_each_comment_once_in_order() {
    let [a, b] = [["x", "y"], ["y", "z"]].map(|comments| Maker::new(&RETAINED, &comments).profile());
    let comments = |profile: Profile| profile.header().comments.iter().map(|each| each.to_string()).collect::<Vec<_>>();
    assert_eq!(comments(analysis::merge(&a, &[&b, &a]).unwrap()), ["x", "y", "z", "merged=3"]);
    assert_eq!(comments(analysis::diff(&b, &a).unwrap()), ["y", "z", "x"]);
}
