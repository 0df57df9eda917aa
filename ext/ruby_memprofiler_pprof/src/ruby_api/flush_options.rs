//! The arguments of `Collector#flush`.

use super::errors::{Wrong, argument};
use super::options;
use crate::collector::FlushOptions;
use magnus::r_hash::ForEach;
use magnus::scan_args::scan_args;
use magnus::{Error, RHash, Ruby, Symbol, Value, prelude::*};

/// What `Collector#flush` takes.
pub const ALL: &[&str] = &[
    "yield_gvl",
    "proactively_yield_gvl",
    "gc",
    "min_age",
    "max_hold",
    "max_duration",
    "sample_type_names",
    "default_sample_type",
];
/// Of that, what `CPU.flush` takes.
pub const OF_CPU: &[&str] = &["yield_gvl", "proactively_yield_gvl", "max_hold", "max_duration"];

/// Validates the arguments of `flush` without flushing.
pub fn check_flush_options(ruby: &Ruby, arguments: &[Value]) -> Result<(), Error> {
    flush_options(ruby, scan_args::<(), (), (), (), RHash, ()>(arguments)?.keywords, ALL).map(|_| ())
}

/// The options given to `flush`, each of which must be `allowed`. May run Ruby code.
pub fn flush_options(ruby: &Ruby, keywords: RHash, allowed: &[&str]) -> Result<FlushOptions, Error> {
    let mut options = FlushOptions::default();
    keywords.foreach(|name: Value, value: Value| {
        let known = Symbol::from_value(name).map(|name| name.name().map(std::borrow::Cow::into_owned)).transpose()?;
        match known.as_deref().filter(|name| allowed.contains(name)) {
            Some(name @ "yield_gvl") => options.yield_gvl = options::boolean(ruby, name, value)?,
            Some(name @ "proactively_yield_gvl") => {
                options.proactively_yield_gvl = options::boolean(ruby, name, value)?;
            }
            Some(name @ "gc") => options.gc = options::boolean(ruby, name, value)?,
            Some(name @ "min_age") => {
                options.min_age = options::integer(ruby, name, value, 0, u64::from(u32::MAX))? as u32;
            }
            Some(name @ "max_hold") => options.max_hold = options::seconds(ruby, name, value)?,
            Some(name @ "max_duration") => options.max_duration = options::seconds(ruby, name, value)?,
            Some(name @ "sample_type_names") => {
                let names = || options::choice(ruby, name, value, &options::SAMPLE_TYPE_NAMES);
                options.sample_type_names = if value.is_nil() { None } else { Some(names()?) };
            }
            Some(name @ "default_sample_type") => {
                options.default_sample_type = options::choice(ruby, name, value, &options::SAMPLE_TYPES)?;
            }
            _ => {
                let allowed = allowed.join(", ");
                return Err(argument(ruby, Wrong::Value, "keyword", name, &format!("one of {allowed}")));
            }
        }
        Ok(ForEach::Continue)
    })?;
    Ok(options)
}
