//! What the gem finds out about the running Ruby, for `memprofiler doctor`.

use super::ractors::check_ractors;
use crate::collector::walker_check;
use crate::vm::{RUBY_MAJOR, RUBY_MINOR, mark_bits, quirks::Quirks};
use magnus::{Error, RArray, RHash, RModule, Ruby, function, prelude::*};

/// Defines the function.
pub fn init(module: RModule) -> Result<(), Error> {
    module.singleton_class()?.define_private_method("diagnose", function!(diagnose, 0))
}

/// What is supported, as a Hash. Tests the walker unless that was already done.
fn diagnose(ruby: &Ruby) -> Result<RHash, Error> {
    let main = check_ractors(ruby, true)?;
    walker_check::run(ruby, main)?;
    let hash = ruby.hash_new();
    hash.aset(ruby.to_symbol("built_for"), format!("{RUBY_MAJOR}.{RUBY_MINOR}"))?;
    hash.aset(ruby.to_symbol("walker_failure"), walker_check::failure())?;
    let modes = ruby.ary_new();
    if mark_bits::MarkBits::find(ruby).is_some() {
        modes.push(ruby.to_symbol("mark_bits"))?;
    }
    modes.push(ruby.to_symbol("freeobj"))?;
    hash.aset(ruby.to_symbol("liveness"), modes)?;
    let collector = mark_bits::active_collector().map_or_else(|| "default".into(), std::ffi::CStr::to_string_lossy);
    hash.aset(ruby.to_symbol("garbage_collector"), collector.as_ref())?;
    hash.aset(ruby.to_symbol("waiting_threads_known"), cfg!(ruby_gte_3_2))?;
    hash.aset(ruby.to_symbol("quirks"), quirks(ruby)?)?;
    Ok(hash)
}

fn quirks(ruby: &Ruby) -> Result<RArray, Error> {
    let list = ruby.ary_new();
    for (name, meaning, present) in Quirks::current(ruby)?.all() {
        let quirk = ruby.hash_new();
        quirk.aset(ruby.to_symbol("name"), name)?;
        quirk.aset(ruby.to_symbol("meaning"), meaning)?;
        quirk.aset(ruby.to_symbol("present"), present)?;
        list.push(quirk)?;
    }
    Ok(list)
}
