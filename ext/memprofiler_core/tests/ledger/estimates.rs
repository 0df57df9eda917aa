//! Sums of samples, of which only some are measured.

use memprofiler_core::ledger::estimate;

/// Of samples of weight 10.
fn estimated(bytes: &[u64], most: usize, seed: u64) -> (f64, (u64, u64)) {
    let figure = estimate(bytes, most, seed, |&bytes| (10.0, bytes, None));
    (figure.bytes.unwrap() as f64, figure.interval.unwrap())
}

#[test]
fn samples_that_were_not_measured_count_with_those_that_were() {
    let ((all, (low, high)), (half, (half_low, half_high))) =
        (estimated(&[100; 50], 50, 1), estimated(&[100; 50], 25, 1));
    assert_eq!((all, half), (50_000.0, 50_000.0));
    // A standard error of sqrt(50 * 10 * 9) objects, and of sqrt(25 * 20 * 19).
    assert_eq!((high - low, half_high - half_low), (26_296, 38_208));
}

#[test]
fn what_is_measured_is_not_in_step_with_the_program() {
    const SEEDS: u64 = 400;
    // 8,001 samples, of which one in 4 is measured.
    for period in [2, 4, 8, 40] {
        let bytes: Vec<u64> = (0..8_001).map(|number| if number % period == 0 { 5_000 } else { 0 }).collect();
        let truth = bytes.iter().sum::<u64>() as f64 * 10.0;
        let runs: Vec<_> = (0..SEEDS).map(|seed| estimated(&bytes, 2_048, seed)).collect();
        let mean = runs.iter().map(|run| run.0).sum::<f64>() / SEEDS as f64;
        let variance = runs.iter().map(|run| (run.0 - truth).powi(2)).sum::<f64>() / SEEDS as f64;
        assert!((mean - truth).abs() < 4.0 * (variance / SEEDS as f64).sqrt(), "{period}: {mean}, not {truth}");
        let covered = runs.iter().filter(|(_, (low, high))| (*low as f64..=*high as f64).contains(&truth)).count();
        assert!(covered as f64 / SEEDS as f64 >= 0.93, "{period}: {covered}");
    }
}
