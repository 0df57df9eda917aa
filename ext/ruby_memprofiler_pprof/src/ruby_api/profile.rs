//! `MemprofilerPprof::Profile`: the part that reads and combines profiles. The methods for users are in lib/; those
//! here are private, take numbers of columns and table entries, and return plain Arrays.

use super::long_work::{rest, without_gvl};
use super::settle_class;
use magnus::typed_data::Obj;
use magnus::{DataTypeFunctions, Error, Object, RArray, RModule, RString, Ruby, TypedData, Value, function, method};
use magnus::{Module, prelude::*};
use memprofiler_core::analysis::{self, FrameName};
use memprofiler_core::pprof;
use memprofiler_core::profile::{self, LabelValue, ValueType};
use std::sync::Arc;

/// gzip's default level: unlike a flush, writing a profile again is not urgent.
const GZIP_LEVEL: u32 = 6;

/// The Ruby object.
#[derive(TypedData)]
#[magnus(class = "MemprofilerPprof::Profile", size, free_immediately, frozen_shareable)]
pub struct Profile(pub Arc<profile::Profile>);

impl Drop for Profile {
    fn drop(&mut self) {
        // SAFETY: the GC frees objects on Ruby threads, with the GVL held. Subtracting only counts.
        let ruby = unsafe { Ruby::get_unchecked() };
        report_to_gc(&ruby, self, -1);
    }
}

impl DataTypeFunctions for Profile {
    fn size(&self) -> usize {
        self.0.bytes()
    }
}

/// Defines the class.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("Profile", ruby.class_object())?;
    settle_class::<Profile>(ruby);
    super::profile_sum::init(ruby, class)?;
    super::profile_views::init(class)?;
    class.define_singleton_method("decode", function!(decode, 2))?;
    class.define_method("==", method!(equal, 1))?;
    class.define_method("difference?", method!(is_difference, 0))?;
    class.define_method("sampled_in_windows?", method!(is_sampled_in_windows, 0))?;
    class.define_private_method("native_header", method!(header, 0))?;
    class.define_private_method("native_tables", method!(tables, 0))?;
    class.define_private_method("native_sample_count", method!(sample_count, 0))?;
    class.define_private_method("native_sample", method!(sample, 1))?;
    class.define_private_method("native_label_sets", method!(label_sets, 0))?;
    class.define_private_method("native_diff", method!(diff, 1))?;
    class.define_private_method("native_frame_names", method!(frame_names, 0))?;
    class.define_private_method("native_filter_frames", method!(filter_frames, 2))?;
    class.define_private_method("native_filter_labels", method!(filter_labels, 1))?;
    class.define_private_method("native_without_libraries", method!(without_libraries, 0))?;
    class.define_private_method("native_pprof", method!(pprof, 0))
}

/// A new object.
pub fn wrap(ruby: &Ruby, profile: profile::Profile) -> Obj<Profile> {
    let object = ruby.obj_wrap(Profile(Arc::new(profile)));
    object.freeze();
    report_to_gc(ruby, &object, 1);
    object
}

/// Reports a profile's bytes, which are outside Ruby's heap, to the GC: otherwise a program that reads many profiles
/// would keep far more of them than it needs. `sign` is -1 when they are freed.
fn report_to_gc(ruby: &Ruby, profile: &Profile, sign: isize) {
    ruby.gc_adjust_memory_usage(sign * profile.0.bytes() as isize);
}

fn decode(ruby: &Ruby, bytes: RString, max_bytes: u64) -> Result<Obj<Profile>, Error> {
    // SAFETY: the bytes are copied before any Ruby code can run.
    let bytes = unsafe { bytes.as_slice() }.to_vec();
    let decoded = without_gvl(ruby, |interrupt| pprof::decode(&bytes, max_bytes, interrupt));
    decoded.map(|profile| wrap(ruby, profile))
}

fn equal(ruby: &Ruby, this: Obj<Profile>, other: Value) -> Result<bool, Error> {
    let Ok(other) = Obj::<Profile>::try_convert(other) else { return Ok(false) };
    let (this, other) = (Arc::clone(&this.0), Arc::clone(&other.0));
    without_gvl(ruby, |interrupt| profile::equal(&this, &other, interrupt))
}

fn is_difference(this: Obj<Profile>) -> bool {
    this.0.is_difference()
}

fn is_sampled_in_windows(this: Obj<Profile>) -> bool {
    this.0.is_sampled_in_windows()
}

/// [sample types, column of the default one, time, duration, period type, period, comments]
fn header(ruby: &Ruby, this: Obj<Profile>) -> Result<RArray, Error> {
    let header = this.0.header();
    let array = ruby.ary_new();
    array.push(ruby.ary_from_iter(header.sample_types.iter().map(|each| value_type(ruby, each))))?;
    array.push(header.default_column())?;
    array.push(header.time_nanos)?;
    array.push(header.duration_nanos)?;
    array.push(header.period_type.as_ref().map(|each| value_type(ruby, each)))?;
    array.push(header.period)?;
    array.push(ruby.ary_from_iter(header.comments.iter().map(|comment| string(ruby, comment))))?;
    Ok(array)
}

fn value_type(ruby: &Ruby, value_type: &ValueType) -> (RString, RString) {
    (string(ruby, &value_type.name), string(ruby, &value_type.unit))
}

fn string(ruby: &Ruby, text: &str) -> RString {
    let string = ruby.str_new(text);
    string.freeze();
    string
}

/// A String, or nil.
pub fn optional(ruby: &Ruby, text: Option<&Arc<str>>) -> Option<RString> {
    text.map(|text| string(ruby, text))
}

/// [strings, [name, file, first line] of functions, [function, line, function, line, …] of locations]. A location of
/// which only the address is known is that address as a String.
fn tables(ruby: &Ruby, this: Obj<Profile>) -> Result<RArray, Error> {
    let profile = &this.0;
    let tables = profile.tables();
    let functions = tables.functions.iter().map(|function| {
        let name = if tables.strings[function.name as usize].is_empty() { function.system_name } else { function.name };
        (name, function.file, function.start_line)
    });
    let locations = ruby.ary_new();
    for (number, location) in tables.locations.iter().enumerate() {
        rest(number)?;
        if location.lines.is_empty() {
            locations.push(string(ruby, &analysis::address_name(profile, location)))?;
        } else {
            let lines = location.lines.iter().flat_map(|line| [i64::from(line.function), line.line]);
            locations.push(ruby.ary_from_iter(lines))?;
        }
    }
    let array = ruby.ary_new();
    array.push(ruby.ary_from_iter(tables.strings.iter().map(|text| string(ruby, text))))?;
    array.push(ruby.ary_from_iter(functions))?;
    array.push(locations)?;
    Ok(array)
}

fn sample_count(this: Obj<Profile>) -> usize {
    this.0.sample_count()
}

/// [values, locations, innermost first, set of labels], or nil
fn sample(ruby: &Ruby, this: Obj<Profile>, number: usize) -> Option<(RArray, RArray, u32)> {
    let sample = this.0.sample(number)?;
    let locations = ruby.ary_from_iter(this.0.locations(sample.stack));
    Some((ruby.ary_from_iter(sample.values), locations, sample.labels))
}

/// [[key, value], …] for each set
fn label_sets(ruby: &Ruby, this: Obj<Profile>) -> Result<RArray, Error> {
    let tables = this.0.tables();
    let sets = ruby.ary_new();
    for (number, set) in tables.label_sets.iter().enumerate() {
        rest(number)?;
        let labels = ruby.ary_new();
        for label in &**set {
            let key = string(ruby, &tables.strings[label.key as usize]);
            match label.value {
                LabelValue::Text(text) => labels.push((key, string(ruby, &tables.strings[text as usize])))?,
                LabelValue::Number(number, _) => labels.push((key, number))?,
            }
        }
        sets.push(labels)?;
    }
    Ok(sets)
}

fn diff(ruby: &Ruby, this: Obj<Profile>, base: Obj<Profile>) -> Result<Obj<Profile>, Error> {
    let (profile, base) = (Arc::clone(&this.0), Arc::clone(&base.0));
    let refused = |error| format!("the base cannot be subtracted: {error}");
    let difference = without_gvl(ruby, |interrupt| profile::diff(&profile, &base, interrupt).map_err(refused));
    difference.map(|profile| wrap(ruby, profile))
}

/// [name, file] of all functions, followed by an entry for each location: its address if the function is unknown, else
/// nil
fn frame_names(ruby: &Ruby, this: Obj<Profile>) -> Result<RArray, Error> {
    let tables = this.0.tables();
    let names = ruby.ary_new();
    for (number, function) in (0..).zip(&tables.functions) {
        rest(number as usize)?;
        let name = analysis::function_name(&this.0, number);
        names.push((string(ruby, name), string(ruby, &tables.strings[function.file as usize])))?;
    }
    for (number, location) in tables.locations.iter().enumerate() {
        rest(number)?;
        let name = location.lines.is_empty().then(|| analysis::address_name(&this.0, location));
        names.push(name.map(|name| (string(ruby, &name), string(ruby, ""))))?;
    }
    Ok(names)
}

/// `matches` has an element for each entry of `frame_names`.
fn filter_frames(ruby: &Ruby, this: Obj<Profile>, invert: bool, matches: Vec<bool>) -> Result<Obj<Profile>, Error> {
    let profile = Arc::clone(&this.0);
    let functions = profile.tables().functions.len();
    let is_match = |frame| {
        let position = match frame {
            FrameName::Function(function) => function as usize,
            FrameName::Location(location) => functions + location as usize,
        };
        matches.get(position).copied().unwrap_or_default()
    };
    let filtered = without_gvl(ruby, |interrupt| profile.filter_frames(invert, is_match, interrupt));
    filtered.map(|profile| wrap(ruby, profile))
}

/// `matches` has an element for each set of labels.
fn filter_labels(ruby: &Ruby, this: Obj<Profile>, matches: Vec<bool>) -> Result<Obj<Profile>, Error> {
    let profile = Arc::clone(&this.0);
    let keep = |set: u32| matches.get(set as usize).copied().unwrap_or_default();
    let filtered = without_gvl(ruby, |interrupt| profile.filter_labels(keep, interrupt));
    filtered.map(|profile| wrap(ruby, profile))
}

fn without_libraries(ruby: &Ruby, this: Obj<Profile>) -> Result<Obj<Profile>, Error> {
    let profile = Arc::clone(&this.0);
    let own = without_gvl(ruby, |interrupt| profile.without_libraries(interrupt));
    own.map(|profile| wrap(ruby, profile))
}

fn pprof(ruby: &Ruby, this: Obj<Profile>) -> Result<RString, Error> {
    let profile = Arc::clone(&this.0);
    let bytes = without_gvl(ruby, |interrupt| pprof::write(&profile, GZIP_LEVEL, interrupt));
    bytes.map(|bytes| ruby.str_from_slice(&bytes))
}
