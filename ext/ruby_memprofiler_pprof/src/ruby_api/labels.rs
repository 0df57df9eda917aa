//! `MemprofilerPprof.with_labels` and `MemprofilerPprof.labels`.

use super::errors::{Wrong, argument};
use crate::collector::mute::Mute;
use crate::vm::labels::{self, Variable};
use crate::vm::{lossy, threads};
use magnus::r_hash::ForEach;
use magnus::scan_args::scan_args;
use magnus::value::ReprValue;
use magnus::{Error, Float, Integer, RHash, RModule, RString, Ruby, Symbol, Value, function};
use memprofiler_core::labels::LabelSet;

/// Defines the functions.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    labels::define_class(ruby, module)?;
    module.define_module_function("with_labels", function!(with_labels, -1))?;
    module.define_module_function("labels", function!(current, 0))
}

/// Calls the block. What this fiber allocates meanwhile gets the labels, in addition to those it already has.
fn with_labels(ruby: &Ruby, arguments: &[Value]) -> Result<Value, Error> {
    let arguments = scan_args::<(), (Option<Value>,), (), (), RHash, ()>(arguments)?;
    if !ruby.block_given() {
        return Err(Error::new(ruby.exception_arg_error(), "with_labels needs a block"));
    }
    let mut set = in_force();
    let (positional,) = arguments.optional;
    if let Some(labels) = positional {
        let labels = RHash::from_value(labels)
            .ok_or_else(|| argument(ruby, Wrong::Type, "labels", labels, "a Hash of keys and values"))?;
        add(ruby, &mut set, labels)?;
    }
    add(ruby, &mut set, arguments.keywords)?;
    let previous = {
        let _mute = Mute::new(threads::current_context());
        Variable::new(ruby, set)?.swap()?
    };
    let result = ruby.yield_values(());
    previous.swap()?;
    result
}

/// The labels of the running fiber.
fn current(ruby: &Ruby) -> Result<RHash, Error> {
    let hash = ruby.hash_new();
    for (key, value) in in_force().pairs() {
        hash.aset(ruby.to_symbol(&**key), &**value)?;
    }
    hash.freeze();
    Ok(hash)
}

fn in_force() -> LabelSet {
    // SAFETY: the GVL is held, and the set is copied immediately.
    unsafe { labels::current() }.map(|labels| LabelSet::clone(&labels)).unwrap_or_default()
}

fn add(ruby: &Ruby, set: &mut LabelSet, labels: RHash) -> Result<(), Error> {
    labels.foreach(|key: Value, value: Value| {
        let name = key_name(ruby, key)?;
        set.set(&name, value_text(ruby, &name, value)?.as_deref());
        if set.pairs().len() > LabelSet::MAX_PAIRS {
            let allowed = format!("at most {} labels in all", LabelSet::MAX_PAIRS);
            return Err(argument(ruby, Wrong::Value, "labels", labels.as_value(), &allowed));
        }
        Ok(ForEach::Continue)
    })
}

fn key_name(ruby: &Ruby, key: Value) -> Result<String, Error> {
    let allowed = format!(
        "a Symbol or String of 1 to {} bytes, other than class and gc_age, and not starting with pprof::",
        LabelSet::MAX_BYTES
    );
    let name = text(key).ok_or_else(|| argument(ruby, Wrong::Type, "label key", key, &allowed))?;
    let reserved = matches!(&*name, "class" | "gc_age") || name.starts_with("pprof::");
    if reserved || name.is_empty() || name.len() > LabelSet::MAX_BYTES {
        return Err(argument(ruby, Wrong::Value, "label key", key, &allowed));
    }
    Ok(name)
}

/// The text of a label's value; None removes the label.
fn value_text(ruby: &Ruby, key: &str, value: Value) -> Result<Option<String>, Error> {
    if value.is_nil() {
        return Ok(None);
    }
    let plain = Integer::from_value(value).is_some()
        || Float::from_value(value).is_some()
        || value.is_kind_of(ruby.class_true_class())
        || value.is_kind_of(ruby.class_false_class());
    let text = if plain { Some(value.to_string()) } else { text(value) };
    let wrong = || {
        let allowed = "a String, Symbol, number, true or false, or nil to remove it";
        argument(ruby, Wrong::Type, &format!("label {key}"), value, allowed)
    };
    text.map(Some).ok_or_else(wrong)
}

/// The characters of a String or Symbol; invalid ones are replaced.
pub(super) fn text(value: Value) -> Option<String> {
    let symbol = Symbol::from_value(value).map(lossy::symbol);
    symbol.or_else(|| RString::from_value(value).map(lossy::string))
}
