//! Whether paths become a profile.

use crate::program::{GLOBALS, Program, constant, ivar};
use memprofiler_core::analysis::{By, Estimator, flamegraph, folded, top};
use memprofiler_core::graph::{Answer, Edge, Question, profile};
use memprofiler_core::interrupt::Interrupt;
use memprofiler_core::pprof;
use memprofiler_core::profile::{LabelValue, Profile, diff};
use memprofiler_core::window_group::WindowGroup;
use std::sync::Arc;

fn never() -> Interrupt {
    Interrupt::default()
}

/// Two sites with objects in a Hash and a global variable.
fn program() -> Program {
    let mut program = Program::new();
    let class = program.class("Audit");
    let log = program.object("Hash", class, constant("LOG"));
    program.strings(3, log, &Edge::Value(None));
    let recent = program.object("Array", GLOBALS, Edge::Global("$recent".to_owned()));
    for _ in 0..2 {
        let entry = program.object("Entry", recent, Edge::Element);
        program.sample(entry, 1);
    }
    program
}

fn of(answer: &Answer) -> Profile {
    profile(answer, 7, &[Arc::from("tag.host=a")], &never()).unwrap()
}

#[test]
fn stacks_are_paths_from_the_root() {
    let profile = of(&program().answer());
    let lines = folded(&profile, 1, &never()).unwrap();
    let mut lines: Vec<&str> = lines.lines().collect();
    lines.sort_unstable();
    let expected = [
        "Audit;Audit::LOG (constant, /app/a.rb:2) → Hash;Hash → values → String 1200",
        "global variables;$recent → Array;Array → elements → Entry 800",
    ];
    assert_eq!(lines, expected);
    let types: Vec<String> = profile.header().sample_types.iter().map(ToString::to_string).collect();
    assert_eq!(types, ["retained_objects/count", "retained_size/bytes"]);
    assert_eq!((profile.header().default_column(), profile.header().time_nanos), (Some(1), 7));
}

#[test]
fn samples_have_the_site_and_the_class_of_their_objects() {
    let profile = of(&program().answer());
    let tables = profile.tables();
    let text = |string: u32| tables.strings[string as usize].to_string();
    let labels = profile.samples().map(|sample| {
        let labels = tables.label_sets[sample.labels as usize].iter();
        let labels = labels.map(|label| match label.value {
            LabelValue::Text(value) => format!("{}={}", text(label.key), text(value)),
            LabelValue::Number(..) => panic!("a number"),
        });
        (labels.collect::<Vec<_>>().join(" "), sample.values)
    });
    let expected = [("class=String site=a.rb:1", vec![30, 1200]), ("class=Entry site=a.rb:2", vec![20, 800])];
    assert_eq!(labels.collect::<Vec<_>>(), expected.map(|(labels, values)| (labels.to_owned(), values)));
}

#[test]
fn constants_have_a_file_and_a_line() {
    let lines = top(&of(&program().answer()), 1, By::Line, &never()).unwrap();
    let constant = lines.iter().find(|site| site.group.line.is_some()).unwrap();
    assert_eq!((constant.group.file.as_deref(), constant.group.line), (Some("/app/a.rb"), Some(2)));
    assert_eq!(constant.cumulative.value, 1200);
}

#[test]
fn estimates_know_their_error() {
    let profile = of(&program().answer());
    let estimator = Estimator::new(&profile, 0);
    let total = estimator.total(&never()).unwrap();
    assert!(estimator.knows_error());
    assert_eq!((total.value, total.samples, total.independent_variance), (50, 5.0, 50.0 * 9.0));
}

#[test]
fn what_was_sampled_in_windows_stays_apart_and_is_rounded_once() {
    let mut program = program();
    for (number, sample) in program.samples.iter_mut().enumerate() {
        sample.window = Some(WindowGroup::new(number));
        sample.weight = 1.4;
    }
    let bytes = pprof::write(&of(&program.answer()), 6, &never()).unwrap();
    let read = pprof::decode(&bytes, 1 << 20, &never()).unwrap();
    // 3 * 1.4 and 2 * 1.4.
    assert_eq!(read.samples().map(|sample| sample.values[0]).collect::<Vec<_>>(), [4, 3]);
    let windows = Estimator::new(&read, 0).total(&never()).unwrap().windows.unwrap();
    assert_eq!(windows.iter().sum::<f64>(), 7.0);
    assert!(windows[..5].iter().all(|&sum| sum > 0.0), "{windows:?}");
}

#[test]
fn the_sum_of_samples_is_unbiased() {
    let mut program = Program::new();
    for site in 0..3 {
        let string = program.object("String", GLOBALS, Edge::Global("$a".to_owned()));
        program.sample(string, site);
    }
    program.samples.iter_mut().for_each(|sample| sample.weight = 1.4);
    let profile = of(&program.answer());
    assert_eq!(profile.samples().map(|sample| sample.values[0]).collect::<Vec<_>>(), [1, 2, 1]);
}

#[test]
fn it_can_be_written_compared_and_drawn() {
    let profile = of(&program().answer());
    let bytes = pprof::write(&profile, 6, &never()).unwrap();
    assert_eq!(bytes, pprof::write(&of(&program().answer()), 6, &never()).unwrap(), "the same bytes each time");
    let read = pprof::decode(&bytes, 1 << 20, &never()).unwrap();
    assert_eq!(diff(&profile, &read, &never()).unwrap().sample_count(), 0);
    let mut more = program();
    let class = more.class("Other");
    more.strings(4, class, &ivar("@a"));
    let difference = diff(&of(&more.answer()), &read, &never()).unwrap();
    assert_eq!(folded(&difference, 0, &never()).unwrap().trim(), "Other;Other.@a → String 40");
    let drawn = flamegraph(&[&profile, &read], By::Method, 0.0, &never()).unwrap();
    assert!(drawn.contains("Audit::LOG"), "{drawn}");
}

#[test]
fn a_greatest_weight_of_the_collector_is_kept() {
    let answer = program().answer_to(&Question { limit: 1, ..Question::default() });
    let comments = |comments: &[Arc<str>]| profile(&answer, 0, comments, &never()).unwrap().header().comments.join(" ");
    assert_eq!(comments(&[]), "greatest_weight=10");
    assert_eq!(comments(&["greatest_weight=50".into()]), "greatest_weight=50");
}

#[test]
fn it_can_be_interrupted() {
    let interrupt = never();
    interrupt.strike();
    assert!(profile(&program().answer(), 0, &[], &interrupt).is_err());
}
