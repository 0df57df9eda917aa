//! Selecting samples, and adding them up by group.

use crate::maker::{Maker, RETAINED, maker, named, names, recursive, sites};
use crate::uninterrupted::{self as analysis, By, Profile, Sum};
use memprofiler_core::interrupt::Interrupt;

#[test]
fn recursive_methods_count_once() {
    let expected = [("<main>", 0, 140), ("fib", 100, 130), ("Class#new", 40, 40), ("(no stack)", 10, 10)];
    assert_eq!(sites(&recursive(), By::Method), named(&expected));
}

#[test]
fn lines_count_what_c_functions_allocate_there() {
    let expected = [("/app/a.rb:9", 10, 140), ("/app/a.rb:3", 130, 130), ("(no stack)", 10, 10)];
    assert_eq!(sites(&recursive(), By::Line), named(&expected));
    let functions: Vec<_> = analysis::top(&recursive(), 0, By::Line)
        .into_iter()
        .filter_map(|site| Some((site.group.line?, site.group.function?.to_string())))
        .collect();
    assert_eq!(functions, [(3, "fib".to_owned()), (9, "<main>".to_owned())]);
}

#[test]
fn files_gems_and_classes_are_added_up() {
    let profile = maker()
        .sample(&["<main> /app/a.rb:9 1", "x /gems/rack-2.2/lib/r.rb:1 1"], Some("A"), &[20, 1])
        .sample(&["<main> /app/a.rb:9 1"], Some("B"), &[5, 1])
        .sample(&["<main> /app/a.rb:9 1"], None, &[1, 1])
        .profile();
    assert_eq!(sites(&profile, By::File), named(&[("/app/a.rb", 6, 26), ("/gems/rack-2.2/lib/r.rb", 20, 20)]));
    assert_eq!(sites(&profile, By::Gem), named(&[("app", 6, 26), ("rack", 20, 20)]));
    assert_eq!(sites(&profile, By::Class), named(&[("A", 20, 20), ("B", 5, 5), ("(no class)", 1, 1)]));
}

/// The name and file of each method.
fn methods(maker: &Maker) -> Vec<(String, Option<String>)> {
    let groups = analysis::top(&maker.profile(), 0, By::Method).into_iter().map(|site| site.group);
    let mut methods: Vec<_> =
        groups.map(|group| (group.name.to_string(), group.file.map(|file| file.to_string()))).collect();
    methods.sort();
    methods
}

#[test]
fn c_functions_have_no_file_whatever_else_was_called() {
    let maker = maker().sample(&["<main> /app/a.rb:9", "Kernel#dup /app/a.rb:9"], None, &[1, 40]);
    let file = Some("/app/a.rb".to_owned());
    assert_eq!(methods(&maker), [("<main>".to_owned(), file), ("Kernel#dup".to_owned(), None)]);
}

#[test]
fn where_nothing_has_a_first_line_functions_keep_their_files() {
    let comments = ["greatest_weight=10", "bt_method=backtrace_locations"];
    let maker = Maker::new(&RETAINED, &comments).of_ruby().sample(&["a /app/a.rb:9"], None, &[1, 40]);
    assert_eq!(methods(&maker), [("a".to_owned(), Some("/app/a.rb".to_owned()))]);
}

#[test]
fn functions_of_other_programs_keep_their_files() {
    let maker = Maker::new(&RETAINED, &[]).sample(&["main /a.go:1 1", "copy /b.s:7"], None, &[1, 40]);
    let [main, copy] =
        [("main", "/a.go"), ("copy", "/b.s")].map(|(name, file)| (name.to_owned(), Some(file.to_owned())));
    assert_eq!(methods(&maker), [copy, main]);
}

#[test]
fn methods_without_a_file_are_one_by_name() {
    let maker = maker().sample(&["a", "<x>"], None, &[1, 40]).sample(&["a :0 1", "<x> :0 1"], None, &[2, 80]);
    assert_eq!(sites(&maker.profile(), By::Method), named(&[("<x>", 3, 3), ("a", 0, 3)]));
}

#[test]
fn inlined_functions_are_frames_of_their_own() {
    let profile = maker().sample(&["main a.go:1", "inner a.go:9|outer a.go:5"], None, &[3, 1]).profile();
    assert_eq!(sites(&profile, By::Method), named(&[("inner", 3, 3), ("main", 0, 3), ("outer", 0, 3)]));
    assert_eq!(names(&profile), ["main;outer;inner 3"]);
}

#[test]
fn estimates_have_the_variance_of_their_samples() {
    // 10 samples of weight 10, each of 40 bytes.
    let profile = maker().sample(&["a /a.rb:1 1"], None, &[100, 4000]).profile();
    let estimate = |column| analysis::Estimator::new(&profile, column).total(&Interrupt::default()).unwrap();
    assert_eq!(estimate(0), Sum { value: 100, independent_variance: 100.0 * 9.0, samples: 10.0, windows: None });
    assert_eq!(
        estimate(1),
        Sum { value: 4000, independent_variance: 100.0 * 9.0 * 1600.0, samples: 10.0, windows: None }
    );
}

#[test]
fn errors_are_unknown_if_the_profile_lacks_weights() {
    let profile = Maker::new(&RETAINED, &[]).profile();
    assert!(!analysis::Estimator::new(&profile, 0).knows_error());
    assert!(analysis::Estimator::new(&maker().profile(), 1).knows_error());
    let alone = Maker::new(&RETAINED[1..], &["greatest_weight=10"]).profile();
    assert!(!analysis::Estimator::new(&alone, 0).knows_error());
}

#[test]
fn frames_and_labels_select_samples() {
    let profile = recursive();
    let is = |name: &'static str| {
        move |frame, profile: &Profile| match frame {
            analysis::FrameName::Function(function) => &**analysis::function_name(profile, function) == name,
            analysis::FrameName::Location(_) => false,
        }
    };
    let chosen =
        |invert, name| profile.filter_frames(invert, |frame| is(name)(frame, &profile), &Interrupt::default()).unwrap();
    assert_eq!(names(&chosen(false, "fib")), ["<main>;fib;fib 100", "<main>;fib;Class#new 30"]);
    assert_eq!(names(&chosen(true, "fib")), ["(no stack) 10", "<main>;Class#new 10"]);
    let set = profile.samples().map(|sample| sample.labels).max().unwrap();
    assert_eq!(
        names(&profile.filter_labels(|labels| labels == set, &Interrupt::default()).unwrap()),
        ["(no stack) 10"]
    );
    assert_eq!(profile.filter_labels(|_| false, &Interrupt::default()).unwrap().sample_count(), 0);
}

#[test]
fn without_libraries_the_errors_are_the_same() {
    let library = |line| format!("l /bundle/ruby/3.4.0/gems/rack-2.2.4/lib/rack.rb:{line} 1");
    let profile = maker()
        .sample(&["m /app/m.rb:1 1", &library(7)], None, &[1000, 40_000])
        .sample(&["m /app/m.rb:1 1", &library(8)], None, &[100, 1_000_000])
        .profile();
    let total = |profile| analysis::Estimator::new(profile, 1).total(&Interrupt::default()).unwrap();
    assert_eq!(total(&profile.without_libraries(&Interrupt::default()).unwrap()), total(&profile));
}

#[test]
fn without_libraries_their_allocations_count_for_the_caller() {
    let library = "l /bundle/ruby/3.4.0/gems/rack-2.2.4/lib/rack.rb:7 1";
    let profile = maker()
        .sample(&["m /app/m.rb:1 1", library, "a /app/a.rb:5 1", library], None, &[10, 400])
        .sample(&["m /app/m.rb:1 1", "a /app/a.rb:5 1"], None, &[20, 800])
        .sample(&[library], None, &[5, 200])
        .profile()
        .without_libraries(&Interrupt::default())
        .unwrap();
    assert_eq!(profile.sample_count(), 2);
    let rack = library.split(' ').nth(1).unwrap();
    assert_eq!(sites(&profile, By::Line), named(&[("/app/a.rb:5", 30, 30), ("/app/m.rb:1", 0, 30), (rack, 5, 5)]));
}
