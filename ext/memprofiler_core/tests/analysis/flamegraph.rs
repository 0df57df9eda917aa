//! The data that a flame graph draws.

use crate::maker::{Maker, maker, refused};
use crate::uninterrupted::{self as analysis, By, Profile};
use memprofiler_core::interrupt::Interrupt;

fn flamegraph(profiles: &[&Profile], min_fraction: f64) -> serde_json::Value {
    serde_json::from_str(&analysis::flamegraph(profiles, By::Method, min_fraction).unwrap()).unwrap()
}

/// "NAME/NAME VALUE" for each node with a value of its own; classes are written `<NAME>`.
fn flames(graph: &serde_json::Value, profile: usize, column: usize) -> Vec<String> {
    let at = |list: &serde_json::Value, index: u64| list[index as usize].as_u64().unwrap();
    let (nodes, frames) = (&graph["nodes"], &graph["frames"]);
    let name = |node: u64| match at(&nodes["kind"], node) {
        2 => "(other)".to_owned(),
        3 => "<(other)>".to_owned(),
        kind => {
            let text = graph["strings"][at(&frames["name"], at(&nodes["frame"], node)) as usize].as_str().unwrap();
            if kind == 1 { format!("<{text}>") } else { text.to_owned() }
        }
    };
    let values = &graph["values"][profile][column];
    let path = |node: u64| {
        let up = std::iter::successors(Some(node), |&node| Some(at(&nodes["parent"], node)));
        let mut names: Vec<String> = up.take_while(|&node| node != 0).map(name).collect();
        names.reverse();
        names.join("/")
    };
    let list = values["node"].as_array().unwrap().iter().zip(values["value"].as_array().unwrap());
    list.map(|(node, value)| format!("{} {value}", path(node.as_u64().unwrap()))).collect()
}

#[test]
fn a_flame_graph_has_one_tree_for_all_profiles() {
    let one = maker().sample(&["a /a.rb:1 1", "b /a.rb:2 2"], Some("String"), &[1, 40]).profile();
    let two = maker()
        .sample(&["a /a.rb:1 1", "b /a.rb:2 2"], Some("String"), &[2, 80])
        .sample(&["a /a.rb:1 1"], None, &[3, 120])
        .profile();
    let graph = flamegraph(&[&one, &two], 0.0);
    assert_eq!(graph["nodes"]["parent"], serde_json::json!([0, 0, 1, 2]));
    assert_eq!(flames(&graph, 0, 0), ["a/b/<String> 1"]);
    let mut found = flames(&graph, 1, 1);
    found.sort();
    assert_eq!(found, ["a 120", "a/b/<String> 80"]);
}

#[test]
fn a_flame_graph_combines_what_is_small_in_all_profiles() {
    let one = maker()
        .sample(&["a /a.rb:1 1", "b /a.rb:2 2"], Some("String"), &[98, 98])
        .sample(&["a /a.rb:1 1", "b /a.rb:2 2"], Some("Hash"), &[1, 1])
        .sample(&["a /a.rb:1 1", "c /a.rb:3 3", "d /a.rb:4 4"], Some("Hash"), &[1, 1])
        .profile();
    let mut folded = flames(&flamegraph(&[&one], 0.02), 0, 0);
    folded.sort();
    assert_eq!(folded, ["a/(other) 1", "a/b/<(other)> 1", "a/b/<String> 98"]);
    let two = maker().sample(&["a /a.rb:1 1", "c /a.rb:3 3", "d /a.rb:4 4"], Some("Hash"), &[9, 9]).profile();
    let mut shown = flames(&flamegraph(&[&one, &two], 0.02), 0, 0);
    shown.sort();
    assert_eq!(shown, ["a/b/<(other)> 1", "a/b/<String> 98", "a/c/d/<Hash> 1"]);
}

#[test]
fn a_flame_graph_has_errors_only_where_they_are_known() {
    let profile = |comments: &[&str]| {
        Maker::new(&[("n", "count"), ("s", "bytes")], comments)
            .sample(&["a /gems/rack-1.0/a.rb:1 1"], None, &[30, 1200])
            .profile()
    };
    let graph = flamegraph(&[&profile(&["greatest_weight=3"])], 0.0);
    assert_eq!(graph["values"][0][0]["variance"], serde_json::json!([60.0]));
    assert_eq!(graph["values"][0][1]["variance"], serde_json::json!([96_000.0]));
    assert_eq!(graph["values"][0][0]["samples"], serde_json::json!([10.0]));
    let gem = graph["frames"]["gem"][1].as_u64().unwrap() as usize;
    assert_eq!(graph["strings"][gem], "rack");
    assert_eq!(graph["values"][0][0]["ticks"], serde_json::Value::Null);
    let graph = flamegraph(&[&profile(&[])], 0.0);
    assert_eq!(graph["values"][0][0]["variance"], serde_json::json!([]));
}

#[test]
fn a_flame_graph_names_only_what_it_shows() {
    let profile = maker()
        .sample(&["a /a.rb:1 1", "secret /b.rb:1 1"], Some("Secret"), &[1, 1])
        .sample(&["a /a.rb:1 1", "c /a.rb:2 2"], Some("Shown"), &[1, 1])
        .profile();
    let shown = |labels: u32| {
        profile.tables().label_sets[labels as usize].iter().any(|label| {
        matches!(label.value, analysis::LabelValue::Text(text) if &*profile.tables().strings[text as usize] == "Shown")
    })
    };
    let kept = profile.filter_labels(shown, &Interrupt::default()).unwrap();
    let graph = flamegraph(&[&kept], 0.0);
    assert_eq!(flames(&graph, 0, 0), ["a/c/<Shown> 1"]);
    assert_eq!(graph["nodes"]["kind"], serde_json::json!([0, 0, 0, 1]));
    assert_eq!(graph["strings"], serde_json::json!(["", "a", "c", "Shown", "/a.rb", "app"]));
}

#[test]
fn a_flame_graph_refuses_other_sample_types() {
    let other = Maker::new(&[("x", "count")], &[]).profile();
    let error = analysis::flamegraph(&[&maker().profile(), &maker().profile(), &other], By::Method, 0.0).unwrap_err();
    assert_eq!(refused(error).index, 1);
}
