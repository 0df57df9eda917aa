//! Times reading, merging and adding up 100 profiles of 50,000 samples:
//!
//! ```text
//! cargo run --release -p memprofiler_core --example merge_profiles [PROFILES [SAMPLES [DIRECTORY]]]
//! ```
//!
//! With a directory it only writes the profiles there, for script/bench_merge.

use memprofiler_core::analysis::{self, By, TreeOptions};
use memprofiler_core::interrupt::Interrupt;
use memprofiler_core::pprof;
use memprofiler_core::profile::{
    self, Builder, EMPTY_STACK, Function, Header, Label, LabelValue, Line, Location, Profile, Row, Scheme, ValueType,
};
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

/// Steele and Vigna's splitmix64: repeatable, and good enough for test data.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// A worker's profile: 3,000 functions, each calling three others, stacks of 10 to 60 frames, 30 classes. All workers
/// share nine of ten stacks.
fn worker(number: u64, samples: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut builder = Builder::new();
    let mut locations = Vec::new();
    for function in 0..3_000_u32 {
        let name = format!("Module{}::Class{}#method{function}", function % 40, function % 300);
        let file = format!("/usr/share/gems/gem{0}-1.0/lib/file{1}.rb", function % 60, function % 400);
        let [name, file] = [name, file].map(|text| builder.string(&Arc::from(text)));
        let function = builder.function(Function { name, system_name: 0, file, start_line: 10 });
        for line in 11..14 {
            let lines = Arc::new([Line { function, line, column: 0 }]);
            locations.push(builder.location(&Location { mapping: None, address: 0, folded: false, lines }));
        }
    }
    let key = builder.string(&Arc::from("class"));
    let classes: Vec<u32> = (0..30)
        .map(|class| {
            let value = LabelValue::Text(builder.string(&Arc::from(format!("Class{class}"))));
            builder.label_set(&[Label { key, value }])
        })
        .collect();
    let header = header();
    let scheme = builder.scheme(Scheme::of(&header));
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    while rows.len() < samples {
        let added = rows.len();
        // A stack that all workers have, or only this one.
        let own = added % 10 == 0;
        let seed = if own { (number + 1) << 32 | added as u64 } else { added as u64 };
        let mut random = Random(seed);
        let mut stack = EMPTY_STACK;
        let depth = 10 + random.below(50);
        let mut function = random.below(50);
        for frame in 0..depth {
            // Usually a function calls the same other one, as middleware does.
            let call = if random.below(4) == 0 { random.below(3) } else { 0 };
            function = Random(function * 3 + call).below(3_000);
            let line = if frame + 1 == depth { random.below(3) } else { call };
            stack = builder.extend(stack, locations[(function * 3 + line) as usize]);
        }
        for class in 0..3 {
            rows.push(Row::new(stack, classes[random.below(10) as usize * 3 + class], scheme));
            values.extend([200, 9000, 100, 4000]);
        }
    }
    let profile = builder.finish(&header, &rows, &values, &Interrupt::default())?;
    Ok(pprof::write_whole(&profile, 1)?)
}

fn header() -> Header {
    Header {
        time_nanos: 1,
        duration_nanos: 1,
        period: 100,
        sample_types: [
            ("allocations", "count"),
            ("allocations_size", "bytes"),
            ("retained_objects", "count"),
            ("retained_size", "bytes"),
        ]
        .map(|(name, unit)| ValueType::new(name, unit))
        .to_vec(),
        comments: vec!["greatest_weight=100".into()],
        ..Header::default()
    }
}

/// Prints how long `work` takes in wall time and in CPU time, which depends less on other load.
fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let result = work();
    println!("{what:<25} {:>7.3} s, CPU {:>7.3} s", start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    result
}

/// The CPU time of this thread in seconds, on Linux; elsewhere NaN.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok()).unwrap_or(f64::NAN) / 1e9
}

fn main() -> Result<(), Box<dyn Error>> {
    let never = &Interrupt::default();
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(Ok(default), |argument| argument.parse::<usize>());
    let (count, samples) = (number(100)?, number(50_000)?);
    if let Some(directory) = arguments.next() {
        return (0..count as u64).try_for_each(|number| {
            let path = format!("{directory}/{number:05}.pprof");
            Ok(std::fs::write(path, worker(number, samples)?)?)
        });
    }
    let files: Vec<Vec<u8>> = (0..count as u64).map(|number| worker(number, samples)).collect::<Result<_, _>>()?;
    println!(
        "{count} profiles of {samples} samples, {} bytes gzipped in all",
        files.iter().map(Vec::len).sum::<usize>()
    );

    let profiles: Vec<Profile> = timed("decode", || {
        files.iter().map(|file| pprof::decode(file, pprof::GREATEST_LIMIT, never)).collect::<Result<_, _>>()
    })?;
    let (first, others) = profiles.split_first().ok_or("no profiles")?;
    let merged = timed("merge", || profile::merge(first, &others.iter().collect::<Vec<_>>(), never))?;
    println!("{} samples, {} stacks", merged.sample_count(), merged.tables().stacks.len());
    for by in [By::Method, By::Line, By::File, By::Gem, By::Class] {
        timed(&format!("top by {by:?}"), || analysis::top(&merged, 3, by, never))?;
    }
    let options = TreeOptions { by: By::Method, classes: false, min_fraction: 0.001, max_depth: u32::MAX };
    timed("tree", || analysis::tree(&merged, 3, options, never))?;
    timed("diff with the first", || profile::diff(&merged, first, never))?;
    let written = timed("write as pprof", || pprof::write(&merged, 1, never))?;
    timed("folded", || analysis::folded(&merged, 3, never))?;
    timed("speedscope", || analysis::speedscope(&merged, "merged", "merge_profiles", never))?;
    println!("{} bytes of pprof", written.len());
    Ok(())
}
