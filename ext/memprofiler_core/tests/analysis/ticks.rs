//! The precision of profiles of CPU time.

use crate::maker::Maker;
use crate::uninterrupted::{self as analysis, By, Profile};
use memprofiler_core::interrupt::Interrupt;
use memprofiler_core::pprof::message;

const TYPES: [(&str, &str); 2] = [("samples", "count"), ("cpu", "nanoseconds")];

/// 100 ticks of 10 ns in a, 300 in b, and 50 ns that clocks have counted.
fn profile() -> Profile {
    let mut maker = Maker::new(&TYPES, &[])
        .sample(&["a /a.rb:1 1"], None, &[100, 1000])
        .sample(&["b /a.rb:2 1"], None, &[300, 3000])
        .sample(&["(other) :0 0"], None, &[0, 50]);
    let (r#type, unit) = (maker.string("cpu"), maker.string("nanoseconds"));
    maker.0.period_type = Some(message::ValueType { r#type, unit });
    maker.profile()
}

#[test]
fn ticks_are_split_binomially() {
    let profile = profile();
    let estimator = analysis::Estimator::new(&profile, 1);
    assert!(estimator.knows_error());
    let sites = analysis::top(&profile, 1, By::Method);
    let error = |name: &str| {
        let site = sites.iter().find(|site| &*site.group.name == name).unwrap();
        estimator.variance(&site.flat).sqrt() / site.flat.value as f64
    };
    let expected = |part: f64, ticks: f64| ((1.0 - part) / ticks).sqrt();
    assert!((error("a") - expected(0.25, 100.0)).abs() < 1e-9);
    assert!((error("b") - expected(0.75, 300.0)).abs() < 1e-9);
}

#[test]
fn what_clocks_say_is_exact() {
    let profile = profile();
    let estimator = analysis::Estimator::new(&profile, 1);
    let total = estimator.total(&Interrupt::default()).unwrap();
    assert_eq!((total.value, total.samples, estimator.variance(&total)), (4050, 400.0, 0.0));
    assert_eq!(estimator.variance(&estimator.row(2)), 0.0);
}

#[test]
fn a_flame_graph_has_what_the_page_needs_for_that() {
    let graph: serde_json::Value =
        serde_json::from_str(&analysis::flamegraph(&[&profile()], By::Method, 0.0).unwrap()).unwrap();
    let time = &graph["values"][0][1];
    // v²/n of each node, and N.
    assert_eq!(time["variance"], serde_json::json!([10_000.0, 30_000.0, 0.0]));
    assert_eq!(time["ticks"], serde_json::json!(400.0));
}

#[test]
fn a_flame_graph_rounds_no_variance_that_cancels_out() {
    let mut maker = Maker::new(&TYPES, &[]).sample(&["a /a.rb:1 1"], None, &[7, 100]);
    let (r#type, unit) = (maker.string("cpu"), maker.string("nanoseconds"));
    maker.0.period_type = Some(message::ValueType { r#type, unit });
    let graph: serde_json::Value =
        serde_json::from_str(&analysis::flamegraph(&[&maker.profile()], By::Method, 0.0).unwrap()).unwrap();
    assert!((graph["values"][0][1]["variance"][0].as_f64().unwrap() - 10_000.0 / 7.0).abs() < 1e-9);
}

#[test]
fn ticks_themselves_have_the_same_relative_error() {
    let profile = profile();
    let (ticks, time) = (analysis::Estimator::new(&profile, 0), analysis::Estimator::new(&profile, 1));
    let error = |estimator: &analysis::Estimator| {
        let row = estimator.row(0);
        estimator.variance(&row).sqrt() / row.value as f64
    };
    assert!((error(&ticks) - error(&time)).abs() < 1e-9);
}
