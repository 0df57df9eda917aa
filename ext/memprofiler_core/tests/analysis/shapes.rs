//! Stacks in other formats: trees, folded stacks, speedscope.

use crate::maker::{maker, maker_of_one, named, names, recursive, sites};
use crate::uninterrupted::{self as analysis, By, Profile, TreeOptions};
use memprofiler_core::pprof::message;
use std::sync::Arc;

const ALL: TreeOptions = TreeOptions { by: By::Method, classes: false, min_fraction: 0.0, max_depth: u32::MAX };

/// The nodes below the root, each with its parent and its flat and cumulative values.
fn tree(profile: &Profile, options: TreeOptions) -> Vec<String> {
    let (nodes, groups) = analysis::tree(profile, 0, options);
    let name = |number: u32| {
        nodes[number as usize].group.map_or("root".into(), |group| groups[group as usize].name.to_string())
    };
    let mut lines: Vec<_> = (1..nodes.len() as u32)
        .map(|number| {
            let node = &nodes[number as usize];
            format!("{} > {} {} {}", name(node.parent), name(number), node.flat.value, node.cumulative.value)
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn the_tree_has_calls_below_their_callers() {
    let options = TreeOptions { classes: true, ..ALL };
    let shown = |options| tree(&recursive(), options);
    assert_eq!(
        shown(options),
        [
            "<main> > Class#new 0 10",
            "<main> > fib 0 130",
            "Class#new > Object 10 10",
            "Class#new > Object 30 30",
            "fib > Class#new 0 30",
            "fib > String 100 100",
            "fib > fib 0 100",
            "root > <main> 0 140",
            "root > Proc 10 10",
        ]
    );
    let pruned = TreeOptions { classes: false, min_fraction: 0.3, max_depth: 2, ..options };
    assert_eq!(shown(pruned), ["<main> > fib 0 130", "root > <main> 0 140"]);
    assert_eq!(shown(TreeOptions { by: By::Class, ..options }).len(), 3);
}

/// A difference in which main has as much as before: g has 1000 less, h 990 more, and main itself 10 more.
fn moved() -> Profile {
    let with = |g, h, main| {
        let maker = maker().sample(&["main /a.rb:1 1", "g /a.rb:2 2"], None, &[g, g]);
        maker.sample(&["main /a.rb:1 1", "g /a.rb:2 2", "h /a.rb:3 3"], None, &[h, h]).sample(
            &["main /a.rb:1 1"],
            None,
            &[main, main],
        )
    };
    analysis::diff(&with(100, 1990, 20).profile(), &with(1100, 1000, 10).profile()).unwrap()
}

#[test]
fn the_tree_of_a_difference_shows_what_cancels_out_further_up() {
    assert_eq!(tree(&moved(), ALL), ["g > h 990 990", "main > g -1000 -10", "root > main 10 0"]);
}

#[test]
fn the_least_part_of_a_difference_is_that_of_all_changes() {
    let pruned = TreeOptions { min_fraction: 0.4, ..ALL };
    assert_eq!(tree(&moved(), pruned), ["g > h 990 990", "main > g -1000 -10", "root > main 10 0"]);
    assert_eq!(tree(&moved(), TreeOptions { min_fraction: 0.6, ..ALL }), ["main > g -1000 -10", "root > main 10 0"]);
}

#[test]
fn the_tree_leaves_out_what_has_not_changed() {
    assert_eq!(tree(&analysis::diff(&recursive(), &recursive()).unwrap(), ALL), [""; 0]);
}

#[test]
fn folded_names_cannot_break_the_format() {
    let mut maker = maker();
    let name = maker.string("a;b\nc");
    let profile = {
        let mut maker = maker.sample(&["x /a.rb:1 1"], None, &[1, 1]);
        maker.0.function[0].name = name;
        maker.profile()
    };
    assert_eq!(names(&profile), ["a:b c 1"]);
}

#[test]
fn speedscope_gets_every_column_and_nothing_negative() {
    let json = analysis::speedscope(&recursive(), "a \"name\"", "test").unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["name"], "a \"name\"");
    assert_eq!(value["profiles"][0]["endValue"], 150);
    assert_eq!(value["profiles"][1]["unit"], "bytes");
    let difference = analysis::diff(&maker().profile(), &recursive()).unwrap();
    assert!(analysis::speedscope(&difference, "x", "test").is_err());
}

#[test]
fn a_stack_of_100_000_frames_is_no_deeper_than_another() {
    let mut maker = maker_of_one();
    maker.0.sample[0].location_id = vec![1; 100_000];
    let profile = maker.profile();
    assert_eq!(sites(&profile, By::Method), named(&[("a", 1, 1)]));
    let options = TreeOptions { by: By::Method, classes: false, min_fraction: 0.0, max_depth: u32::MAX };
    assert_eq!(analysis::tree(&profile, 0, options).0.len(), 100_001);
    let merged = analysis::merge(&profile, &[&profile]).unwrap();
    assert_eq!(analysis::folded(&merged, 0).len(), 2 * 100_000 + 2);
}

#[test]
fn functions_with_only_the_name_of_the_linker_are_told_apart() {
    let mut maker = maker().sample(&["a /lib.c:1 1", "b /lib.c:2 1"], None, &[1, 1]);
    for function in &mut maker.0.function {
        (function.name, function.system_name) = (0, function.name);
    }
    assert_eq!(names(&maker.profile()), ["a;b 1"]);
    assert_eq!(sites(&maker.profile(), By::Method).len(), 2);
}

#[test]
fn lines_without_a_file_have_the_name_of_their_function() {
    let maker = maker().sample(&["a :7 1"], None, &[1, 1]).sample(&["b :7 1"], None, &[2, 2]);
    assert_eq!(sites(&maker.profile(), By::Line), named(&[("b", 2, 2), ("a", 1, 1)]));
}

#[test]
fn places_without_a_function_have_their_address() {
    let mut maker = maker_of_one();
    maker.0.location[0].line.clear();
    (maker.0.location[0].mapping_id, maker.0.location[0].address) = (0, 0xabc);
    assert_eq!(names(&maker.profile()), ["0xabc 1"]);
    let file: Arc<str> = Arc::from("/bin/prog");
    let filename = maker.string(&file);
    maker.0.mapping.push(message::Mapping { id: 5, filename, ..Default::default() });
    maker.0.location[0].mapping_id = 5;
    assert_eq!(names(&maker.profile()), ["0xabc in prog 1"]);
}
