//! The core's operations without interrupts.

use memprofiler_core::interrupt::Interrupt;
use std::io;

pub use memprofiler_core::analysis::{
    By, Estimator, FrameName, Group, Site, SpeedscopeError, Sum, TreeNode, TreeOptions, function_name,
};
pub use memprofiler_core::pprof::DecodeError;
pub use memprofiler_core::profile::{CombineError, Incompatible, LabelValue, Profile};
use memprofiler_core::{analysis, pprof, profile};

pub fn decode(bytes: &[u8], limit: u64) -> Result<Profile, DecodeError> {
    pprof::decode(bytes, limit, &Interrupt::default())
}

pub fn write(profile: &Profile, level: u32) -> io::Result<Vec<u8>> {
    pprof::write(profile, level, &Interrupt::default())
}

pub fn merge(first: &Profile, others: &[&Profile]) -> Result<Profile, CombineError> {
    profile::merge(first, others, &Interrupt::default())
}

pub fn diff(profile: &Profile, base: &Profile) -> Result<Profile, CombineError> {
    profile::diff(profile, base, &Interrupt::default())
}

pub fn top(profile: &Profile, column: usize, by: By) -> Vec<Site> {
    analysis::top(profile, column, by, &Interrupt::default()).unwrap()
}

pub fn tree(profile: &Profile, column: usize, options: TreeOptions) -> (Vec<TreeNode>, Vec<Group>) {
    analysis::tree(profile, column, options, &Interrupt::default()).unwrap()
}

pub fn folded(profile: &Profile, column: usize) -> String {
    analysis::folded(profile, column, &Interrupt::default()).unwrap()
}

pub fn speedscope(profile: &Profile, name: &str, exporter: &str) -> Result<String, SpeedscopeError> {
    analysis::speedscope(profile, name, exporter, &Interrupt::default())
}

pub fn flamegraph(profiles: &[&Profile], by: By, min_fraction: f64) -> Result<String, CombineError> {
    analysis::flamegraph(profiles, by, min_fraction, &Interrupt::default())
}
