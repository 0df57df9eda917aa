//! Any bytes: reading them is an error, or gives a profile with which everything can be done.

#![no_main]

use libfuzzer_sys::fuzz_target;
use memprofiler_core::analysis::{self, By, TreeOptions};

fuzz_target!(|bytes: &[u8]| {
    let Ok(profile) = analysis::decode(bytes, 1 << 20) else { return };
    let written = analysis::write(&profile, 1).expect("a profile can be written");
    assert_eq!(analysis::decode(&written, 1 << 26).expect("what was written can be read"), profile);
    let twice = analysis::merge(&profile, &[&profile]).expect("equal types can be merged");
    let difference = analysis::diff(&profile, &profile).expect("equal types can be subtracted");
    assert_eq!(difference.sample_count(), 0);
    let _ = analysis::speedscope(&twice, "fuzz", "fuzz");
    for column in 0..profile.header().sample_types.len().min(3) {
        for by in [By::Method, By::Line, By::File, By::Gem, By::Class] {
            analysis::top(&twice, column, by);
            let options = TreeOptions { by, classes: true, min_fraction: 0.01, max_depth: 100 };
            analysis::tree(&twice, column, options);
        }
        analysis::folded(&difference, column);
    }
    profile.filter_frames(false, |_| true);
    profile.filter_labels(|set| set == 0);
});
