//! Arbitrary bytes: reading them fails, or gives a profile on which every operation works, at a cost in proportion to
//! its size.

#![no_main]

mod work;

use flate2::bufread::MultiGzDecoder;
use libfuzzer_sys::fuzz_target;
use memprofiler_core::analysis::{self, By, TreeOptions};
use memprofiler_core::interrupt::Interrupt;
use memprofiler_core::pprof::{self, DecodeError};
use memprofiler_core::profile::{self, Profile};
use std::io::{self, Read};
use work::{bounded, most};

/// The maximum size of the decompressed input, in bytes.
const LIMIT: u64 = 1 << 16;

/// The decompressed size of `bytes`.
fn plain_size(bytes: &[u8]) -> u64 {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return bytes.len() as u64;
    }
    let mut plain = MultiGzDecoder::new(bytes).take(LIMIT);
    io::copy(&mut plain, &mut io::sink()).unwrap_or(LIMIT)
}

fuzz_target!(|bytes: &[u8]| {
    let never = &Interrupt::default();
    let plain = plain_size(bytes);
    let decoded = bounded("decode", 1024 * (plain + LIMIT), || pprof::decode(bytes, LIMIT, never));
    let Ok(profile) = decoded else { return };
    let (once, double) = (most(plain, 1), most(plain, 2));
    let written = bounded("write", once, || pprof::write(&profile, 1, never)).expect("a profile can be written");
    match pprof::decode(&written, 1 << 26, never) {
        // What was left out may have made the profile long enough for its frames or names.
        Err(DecodeError::Expands(_)) => {}
        again => {
            let again = again.expect("what was written can be read");
            assert!(bounded("equal", double, || profile::equal(&again, &profile, never)) == Ok(true));
        }
    }
    let twice = bounded("merge", double, || profile::merge(&profile, &[&profile], never));
    let twice = twice.expect("equal types can be merged");
    let difference = bounded("diff", double, || profile::diff(&profile, &profile, never));
    let difference = difference.expect("equal types can be subtracted");
    assert_eq!(difference.sample_count(), 0);
    show(&twice, double);
    let _ = bounded("filter_frames", once, || profile.filter_frames(false, |_| true, never));
    let _ = bounded("filter_labels", once, || profile.filter_labels(|set| set == 0, never));
    let _ = bounded("without_libraries", once, || profile.without_libraries(never));
});

fn show(profile: &Profile, most: u64) {
    let never = &Interrupt::default();
    let columns = profile.header().sample_types.len();
    // Both handle each column separately.
    let each = most * columns.max(1) as u64;
    let _ = bounded("speedscope", each, || analysis::speedscope(profile, "fuzz", "fuzz", never));
    let _ = bounded("flamegraph", each, || analysis::flamegraph(&[profile], By::Line, 0.0, never));
    for column in 0..columns.min(1) {
        for by in [By::Method, By::Line, By::File, By::Gem, By::Class] {
            let _ = bounded("top", most, || analysis::top(profile, column, by, never));
        }
        let options = TreeOptions { by: By::Line, classes: true, min_fraction: 0.01, max_depth: 100 };
        let _ = bounded("tree", most, || analysis::tree(profile, column, options, never));
        let _ = bounded("folded", most, || analysis::folded(profile, column, never));
    }
}
