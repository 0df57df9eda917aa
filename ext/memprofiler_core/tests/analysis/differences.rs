//! Differences in files. They are those of `go tool pprof -diff_base`: what was subtracted has a label.

use crate::maker::{LIMIT, Maker, maker, names, written};
use crate::uninterrupted::{self as analysis, Profile, Sum};
use memprofiler_core::interrupt::Interrupt;
use memprofiler_core::pprof::message;

/// What a has grown by, of which b has as much in both.
fn difference() -> Profile {
    let more = maker().sample(&["a /a.rb:1 1"], None, &[10_010, 400_400]).sample(&["b /b.rb:1 1"], None, &[20, 800]);
    let base = maker().sample(&["a /a.rb:1 1"], None, &[10_000, 400_000]).sample(&["b /b.rb:1 1"], None, &[20, 800]);
    analysis::diff(&more.profile(), &base.profile()).unwrap()
}

fn read(profile: &Profile) -> Profile {
    analysis::decode(&analysis::write(profile, 1).unwrap(), LIMIT).unwrap()
}

fn total(profile: &Profile) -> Sum {
    analysis::Estimator::new(profile, 0).total(&Interrupt::default()).unwrap()
}

/// Adds the label with that value to the last sample.
fn labelled(mut maker: Maker, value: &str) -> Maker {
    let (key, str) = (maker.string("pprof::base"), maker.string(value));
    maker.0.sample.last_mut().unwrap().label.push(message::Label { key, str, ..Default::default() });
    maker
}

#[test]
fn a_difference_that_was_written_is_read_as_one() {
    let (difference, read) = (difference(), read(&difference()));
    assert_eq!(read, difference);
    assert!(read.is_difference());
}

#[test]
fn it_has_the_errors_of_both_sides() {
    let expected = Sum { value: 10, independent_variance: 20_050.0 * 9.0, samples: 2005.0, windows: None };
    assert_eq!((total(&difference()), total(&read(&difference()))), (expected.clone(), expected));
}

#[test]
fn what_was_subtracted_has_a_label_and_negative_values() {
    let message = written(&difference());
    let label = |label: &message::Label| [label.key, label.str].map(|text| &*message.string_table[text as usize]);
    let samples: Vec<_> =
        message.sample.iter().map(|each| (each.value[0], each.label.iter().map(label).collect::<Vec<_>>())).collect();
    let base = vec![["pprof::base", "true"]];
    assert_eq!(samples, [(10_010, vec![]), (-10_000, base.clone()), (20, vec![]), (-20, base)]);
}

#[test]
fn the_differences_of_other_programs_are_read_as_such() {
    let of_go = maker().sample(&["a /a.rb:1 1"], Some("A"), &[70, 700]);
    let of_go = labelled(of_go.sample(&["a /a.rb:1 1"], Some("A"), &[-100, -1000]), "true").profile();
    assert_eq!((names(&of_go), of_go.is_difference()), (vec!["a -30".to_owned()], true));
    let sample = of_go.samples().next().unwrap();
    assert_eq!(of_go.tables().label_sets[sample.labels as usize].len(), 1);
}

#[test]
fn another_value_is_a_label_like_any_other() {
    let profile = labelled(maker().sample(&["a /a.rb:1 1"], None, &[70, 700]), "x").profile();
    let sample = profile.samples().next().unwrap();
    assert_eq!((profile.is_difference(), profile.tables().label_sets[sample.labels as usize].len()), (false, 1));
}

#[test]
fn what_both_sides_have_of_a_window_still_cancels_out() {
    let of_group = |group: u32, count: i64| {
        let maker = maker().sample(&["a /a.rb:1 1"], None, &[count, 40 * count]);
        maker.number("retained_objects_windows", 1 << (4 * group)).profile()
    };
    let shared = of_group(3, 50);
    let more = analysis::merge(&shared, &[&of_group(7, 50)]).unwrap();
    let difference = analysis::diff(&more, &shared).unwrap();
    assert_eq!(total(&read(&difference)), total(&difference));
}
