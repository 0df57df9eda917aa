//! From keyword arguments to options and back.

use super::errors::{Wrong, argument};
use super::tags;
use crate::collector::options::{BacktraceMethod, Liveness, Options, Sampling};
use crate::collector::sample_types::{DefaultType, SampleTypeNames};
use magnus::r_hash::ForEach;
use magnus::value::ReprValue;
use magnus::{Error, Integer, IntoValue, RHash, Ruby, Symbol, TryConvert, Value};
use std::ops::{Bound, RangeBounds};
use std::time::Duration;

/// The names of all options, in the order of the documentation.
pub const NAMES: [&str; 20] = [
    "sample_rate",
    "sampling",
    "window_frame",
    "window_duty",
    "max_sampling_time",
    "max_heap_samples",
    "track_allocations",
    "bt_method",
    "liveness",
    "max_frames",
    "max_stack_bytes",
    "object_class",
    "object_age",
    "labels",
    "thread_names",
    "track_peak",
    "sample_type_names",
    "pretty_backtraces",
    "seed",
    "tags",
];

const SAMPLING: [(&str, Sampling); 3] =
    [("auto", Sampling::Auto), ("always", Sampling::Always), ("windows", Sampling::Windows)];

const BT_METHODS: [(&str, BacktraceMethod); 3] = [
    ("cfp", BacktraceMethod::ControlFrames),
    ("profile_frames", BacktraceMethod::ProfileFrames),
    ("backtrace_locations", BacktraceMethod::BacktraceLocations),
];

const LIVENESS: [(&str, Liveness); 3] =
    [("auto", Liveness::Auto), ("freeobj", Liveness::FreeObject), ("mark_bits", Liveness::MarkBits)];

/// The choices for the names of the values.
pub const SAMPLE_TYPE_NAMES: [(&str, SampleTypeNames); 2] =
    [("ruby", SampleTypeNames::Ruby), ("go", SampleTypeNames::Go)];

/// The values.
pub const SAMPLE_TYPES: [(&str, DefaultType); 4] = [
    ("allocations", DefaultType::Allocations),
    ("allocations_size", DefaultType::AllocationsSize),
    ("retained_objects", DefaultType::RetainedObjects),
    ("retained_size", DefaultType::RetainedSize),
];

/// Changes `options` according to a Hash of keywords.
pub fn set_all(ruby: &Ruby, options: &mut Options, keywords: RHash) -> Result<(), Error> {
    keywords.foreach(|name: Value, value: Value| {
        let known = Symbol::from_value(name).and_then(|name| {
            let name = name.name().ok()?;
            NAMES.into_iter().find(|&known| known == name)
        });
        let Some(known) = known else {
            let message = format!("unknown keyword: {}; allowed are {}", name.inspect(), NAMES.join(", "));
            return Err(Error::new(ruby.exception_arg_error(), message));
        };
        set(ruby, options, known, value)?;
        Ok(ForEach::Continue)
    })
}

/// Changes one of [`NAMES`].
pub fn set(ruby: &Ruby, options: &mut Options, name: &str, value: Value) -> Result<(), Error> {
    match name {
        "sample_rate" => options.sample_rate = number(ruby, name, value, 0.0..=1.0, "a number in 0.0..1.0")?,
        "sampling" => options.sampling = choice(ruby, name, value, &SAMPLING)?,
        "window_frame" => {
            let seconds = || number(ruby, name, value, 0.001..=1.0, "a number of seconds in 0.001..1.0, or nil");
            let frame = if value.is_nil() { None } else { Some(seconds()?) };
            options.window_frame = frame.map(Duration::from_secs_f64);
        }
        "window_duty" => options.window_duty = number(ruby, name, value, 0.01..=0.5, "a number in 0.01..0.5")?,
        "max_sampling_time" => {
            options.max_sampling_time = number(ruby, name, value, 0.0001..=1.0, "a number in 0.0001..1.0")?;
        }
        "max_heap_samples" => {
            options.max_heap_samples = integer(ruby, name, value, 1, Options::MAX_HEAP_SAMPLES as u64)? as usize;
        }
        "track_allocations" => options.track_allocations = boolean(ruby, name, value)?,
        "bt_method" => options.bt_method = choice(ruby, name, value, &BT_METHODS)?,
        "liveness" => options.liveness = choice(ruby, name, value, &LIVENESS)?,
        "max_frames" => options.max_frames = integer(ruby, name, value, 1, Options::MAX_FRAMES as u64)? as usize,
        "max_stack_bytes" => {
            options.max_stack_bytes = integer(ruby, name, value, 1 << 20, 1 << 40)? as usize;
        }
        "object_class" => options.object_class = boolean(ruby, name, value)?,
        "object_age" => options.object_age = boolean(ruby, name, value)?,
        "labels" => options.labels = boolean(ruby, name, value)?,
        "thread_names" => options.thread_names = boolean(ruby, name, value)?,
        "track_peak" => options.track_peak = boolean(ruby, name, value)?,
        "sample_type_names" => options.sample_type_names = choice(ruby, name, value, &SAMPLE_TYPE_NAMES)?,
        "pretty_backtraces" => options.pretty_backtraces = boolean(ruby, name, value)?,
        "seed" => {
            options.seed = if value.is_nil() { None } else { Some(integer(ruby, name, value, 0, u64::MAX)?) };
        }
        "tags" => options.tags = tags::from_ruby(ruby, value)?,
        _ => {}
    }
    Ok(())
}

/// The symbol for a choice of names.
pub fn name_of(names: SampleTypeNames) -> &'static str {
    SAMPLE_TYPE_NAMES.iter().find(|(_, known)| *known == names).map_or("ruby", |(name, _)| name)
}

/// One of [`NAMES`] as a Ruby value.
pub fn get(ruby: &Ruby, options: &Options, name: &str) -> Value {
    match name {
        "sample_rate" => options.sample_rate.into_value_with(ruby),
        "sampling" => ruby.to_symbol(options.sampling.name()).as_value(),
        "window_frame" => options.window_frame.map(|frame| frame.as_secs_f64()).into_value_with(ruby),
        "window_duty" => options.window_duty.into_value_with(ruby),
        "max_sampling_time" => options.max_sampling_time.into_value_with(ruby),
        "max_heap_samples" => options.max_heap_samples.into_value_with(ruby),
        "track_allocations" => options.track_allocations.into_value_with(ruby),
        "bt_method" => ruby.to_symbol(options.bt_method.name()).as_value(),
        "liveness" => ruby.to_symbol(options.liveness.name()).as_value(),
        "max_frames" => options.max_frames.into_value_with(ruby),
        "max_stack_bytes" => options.max_stack_bytes.into_value_with(ruby),
        "object_class" => options.object_class.into_value_with(ruby),
        "object_age" => options.object_age.into_value_with(ruby),
        "labels" => options.labels.into_value_with(ruby),
        "thread_names" => options.thread_names.into_value_with(ruby),
        "track_peak" => options.track_peak.into_value_with(ruby),
        "sample_type_names" => ruby.to_symbol(name_of(options.sample_type_names)).as_value(),
        "pretty_backtraces" => options.pretty_backtraces.into_value_with(ruby),
        "seed" => options.seed.into_value_with(ruby),
        "tags" => tags::to_ruby(ruby, &options.tags),
        _ => ruby.qnil().as_value(),
    }
}

/// A number in `range`, which `allowed` describes.
fn number(ruby: &Ruby, name: &str, value: Value, range: impl RangeBounds<f64>, allowed: &str) -> Result<f64, Error> {
    if !value.is_kind_of(ruby.class_numeric()) {
        return Err(argument(ruby, Wrong::Type, name, value, allowed));
    }
    let number = f64::try_convert(value).map_err(|_| argument(ruby, Wrong::Type, name, value, allowed))?;
    // NaN is in no range.
    if range.contains(&number) { Ok(number) } else { Err(argument(ruby, Wrong::Value, name, value, allowed)) }
}

/// A number of seconds, above 0 and at most a day.
pub fn seconds(ruby: &Ruby, name: &str, value: Value) -> Result<Duration, Error> {
    const DAY: f64 = 86_400.0;
    let range = (Bound::Excluded(0.0), Bound::Included(DAY));
    number(ruby, name, value, range, "a number of seconds above 0, at most 86400").map(Duration::from_secs_f64)
}

/// An Integer in `least..=most`.
pub fn integer(ruby: &Ruby, name: &str, value: Value, least: u64, most: u64) -> Result<u64, Error> {
    let allowed = format!("an Integer in {least}..{most}");
    let integer = Integer::from_value(value).ok_or_else(|| argument(ruby, Wrong::Type, name, value, &allowed))?;
    match integer.to_u64() {
        Ok(number) if (least..=most).contains(&number) && value.funcall::<_, _, bool>(">=", (0,))? => Ok(number),
        _ => Err(argument(ruby, Wrong::Value, name, value, &allowed)),
    }
}

/// True or false; other truthy or falsy values are refused.
pub fn boolean(ruby: &Ruby, name: &str, value: Value) -> Result<bool, Error> {
    if value.is_kind_of(ruby.class_true_class()) || value.is_kind_of(ruby.class_false_class()) {
        return Ok(value.to_bool());
    }
    Err(argument(ruby, Wrong::Type, name, value, "true or false"))
}

/// One of several symbols.
pub fn choice<T: Copy>(ruby: &Ruby, name: &str, value: Value, choices: &[(&str, T)]) -> Result<T, Error> {
    let allowed = || choices.iter().map(|(choice, _)| format!(":{choice}")).collect::<Vec<_>>().join(" or ");
    let symbol = Symbol::from_value(value).ok_or_else(|| argument(ruby, Wrong::Type, name, value, &allowed()))?;
    let chosen = symbol.name()?;
    choices
        .iter()
        .find(|(choice, _)| *choice == chosen)
        .map(|&(_, choice)| choice)
        .ok_or_else(|| argument(ruby, Wrong::Value, name, value, &allowed()))
}
