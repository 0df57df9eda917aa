//! The precision of profiles of CPU time.

use crate::maker::Maker;
use crate::uninterrupted::{self as analysis, By, Profile};
use memprofiler_core::interrupt::Interrupt;
use memprofiler_core::pprof::message;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const TYPES: [(&str, &str); 2] = [("samples", "count"), ("cpu", "nanoseconds")];

/// Of methods and threads, with ticks and time.
fn profile_of(rows: &[(&str, &str, [i64; 2])]) -> Profile {
    let maker = rows.iter().fold(Maker::new(&TYPES, &[]), |maker, (method, thread, values)| {
        maker.sample(&[&format!("{method} /a.rb:1 1")], Some(thread), values)
    });
    let mut maker = maker;
    let (r#type, unit) = (maker.string("cpu"), maker.string("nanoseconds"));
    maker.0.period_type = Some(message::ValueType { r#type, unit });
    maker.profile()
}

/// 100 ticks of 10 ns in a, 300 in b, and 50 ns that clocks have counted.
fn profile() -> Profile {
    profile_of(&[("a", "1", [100, 1000]), ("b", "1", [300, 3000]), ("(other)", "1", [0, 50])])
}

/// The time of that method, and its variance.
fn time(profile: &Profile, method: &str) -> (f64, f64) {
    let sites = analysis::top(profile, 1, By::Method);
    let site = sites.iter().find(|site| &*site.group.name == method).unwrap();
    (site.flat.value as f64, analysis::Estimator::new(profile, 1).variance(&site.flat))
}

#[test]
fn ticks_are_split_binomially() {
    let profile = profile();
    let estimator = analysis::Estimator::new(&profile, 1);
    assert!(estimator.knows_error());
    let error = |method: &str| {
        let (time, variance) = time(&profile, method);
        variance.sqrt() / time
    };
    let expected = |part: f64, ticks: f64| ((1.0 - part) / ticks).sqrt();
    assert!((error("a") - expected(0.25, 100.0)).abs() < 1e-9);
    assert!((error("b") - expected(0.75, 300.0)).abs() < 1e-9);
}

#[test]
fn a_few_ticks_on_one_place_do_not_prove_that_there_is_no_other() {
    let profile = profile_of(&[("a", "1", [3, 30])]);
    let (time, variance) = time(&profile, "a");
    // Half of the interval, in parts of the time.
    assert!((1.96 * variance.sqrt() / time - 0.6).abs() < 0.01);
}

#[test]
fn what_clocks_say_is_exact() {
    let profile = profile();
    let estimator = analysis::Estimator::new(&profile, 1);
    let total = estimator.total(&Interrupt::default()).unwrap();
    assert_eq!((total.value, total.samples, estimator.variance_of_total(&total)), (4050, 400.0, 0.0));
    assert_eq!(estimator.variance(&estimator.row(2)), 0.0);
}

#[test]
fn all_ticks_together_are_known_whatever_time_each_stands_for() {
    let profile = profile_of(&[("a", "1", [100, 1000]), ("b", "1", [300, 5000]), ("b", "2", [7, 900])]);
    let estimator = analysis::Estimator::new(&profile, 1);
    assert_eq!(estimator.variance_of_total(&estimator.total(&Interrupt::default()).unwrap()), 0.0);
    let difference = analysis::diff(&profile, &self::profile()).unwrap();
    let estimator = analysis::Estimator::new(&difference, 1);
    assert_eq!(estimator.variance_of_total(&estimator.total(&Interrupt::default()).unwrap()), 0.0);
}

/// A method takes 30 % of the time of two threads, one with 200 ticks of 4 ns, the other with 60 of 10 ns.
#[test]
fn intervals_cover_what_there_is() {
    let mut random = SmallRng::seed_from_u64(1);
    let (mut all, mut of_one) = (0, 0);
    let covers = |(time, variance): (f64, f64), truth: f64| i32::from((time - truth).abs() <= 1.96 * variance.sqrt());
    for _ in 0..4000 {
        let mut rows = Vec::new();
        for (thread, ticks, each) in [("1", 200, 4), ("2", 60, 10)] {
            let here = (0..ticks).filter(|_| random.random_bool(0.3)).count() as i64;
            rows.push(("a", thread, [here, each * here]));
            rows.push(("b", thread, [ticks - here, each * (ticks - here)]));
        }
        let profile = profile_of(&rows);
        all += covers(time(&profile, "a"), 0.3 * 1400.0);
        let (estimator, row) = (analysis::Estimator::new(&profile, 1), 0);
        let sum = estimator.row(row);
        of_one += covers((sum.value as f64, estimator.variance(&sum)), 0.3 * 800.0);
    }
    let exact = 3740..=3860;
    assert!(exact.contains(&all) && of_one >= *exact.start(), "{all} and {of_one} of 4000");
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
fn a_flame_graph_rounds_no_number_of_ticks() {
    let profile = profile_of(&[("a", "1", [123_456, 1_000_000])]);
    let graph: serde_json::Value =
        serde_json::from_str(&analysis::flamegraph(&[&profile], By::Method, 0.0).unwrap()).unwrap();
    assert_eq!(graph["values"][0][1]["samples"], serde_json::json!([123_456.0]));
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

/// The rows of one method.
fn part(profile: &Profile, method: &str) -> Profile {
    let row = (0..3).find(|&row| {
        let location = profile.locations(profile.rows()[row].stack).next().unwrap();
        let function = profile.tables().locations[location as usize].lines[0].function;
        *profile.tables().strings[profile.tables().functions[function as usize].name as usize] == *method
    });
    let stack = profile.rows()[row.unwrap()].stack;
    profile.select(|row| row.stack == stack, &Interrupt::default()).unwrap()
}

/// The total time, and its variance.
fn total(profile: &Profile) -> (f64, f64) {
    let estimator = analysis::Estimator::new(profile, 1);
    let total = estimator.total(&Interrupt::default()).unwrap();
    (total.value as f64, estimator.variance_of_total(&total))
}

#[test]
fn a_part_is_known_as_well_as_in_the_whole() {
    let profile = profile();
    let part = part(&profile, "a");
    assert_eq!(total(&part), time(&profile, "a"));
    assert_eq!(total(&part.select(|_| true, &Interrupt::default()).unwrap()), time(&profile, "a"));
}

#[test]
fn the_most_is_the_time_of_all_ticks_unless_some_are_left_out_or_subtracted() {
    let profile = profile();
    let most = |profile: &Profile| analysis::Estimator::new(profile, 1).most();
    assert_eq!((most(&profile), most(&part(&profile, "a"))), (Some(4050.0), None));
    assert_eq!(most(&analysis::diff(&profile, &self::profile()).unwrap()), None);
}

#[test]
fn parts_that_are_merged_are_known_as_well_as_in_the_merged_whole() {
    let (profile, other) = (profile(), profile_of(&[("a", "1", [50, 500]), ("b", "1", [150, 1500])]));
    let whole = analysis::merge(&profile, &[&other]).unwrap();
    let parts = analysis::merge(&part(&profile, "a"), &[&part(&other, "a")]).unwrap();
    assert_eq!(total(&parts), time(&whole, "a"));
    let differences =
        [analysis::diff(&profile, &other).unwrap(), analysis::diff(&part(&profile, "a"), &part(&other, "a")).unwrap()];
    assert_eq!(total(&differences[1]), time(&differences[0], "a"));
}

#[test]
fn without_what_has_no_ticks_all_is_known() {
    let profile = profile();
    let ticks = profile.select(
        |row| profile.values(profile.rows().iter().position(|&other| other == row).unwrap())[0] > 0,
        &Interrupt::default(),
    );
    assert_eq!(total(&ticks.unwrap()), (4000.0, 0.0));
}
