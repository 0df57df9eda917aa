//! The option `tags`: conversion from and to a Hash.

use super::errors::{Wrong, argument};
use super::labels;
use magnus::r_hash::ForEach;
use magnus::value::ReprValue;
use magnus::{Error, IntoValue, RHash, Ruby, Value};
use std::sync::Arc;

/// The maximum length of a name or value, in bytes.
const MAX_BYTES: usize = 256;

/// The rules of Pyroscope, which has no quoting. lib/ruby_memprofiler_pprof/tags.rb has the same.
const ALLOWED: &str = "a Hash whose names consist of letters, digits, _ and ., do not start with a digit, . or __, and \
                       differ, and whose values have 1 to 256 bytes, without , = { } or control characters";

/// Validates the tags; nil stands for none.
pub fn from_ruby(ruby: &Ruby, value: Value) -> Result<Arc<[(String, String)]>, Error> {
    if value.is_nil() {
        return Ok(Arc::default());
    }
    let wrong = |kind| argument(ruby, kind, "tags", value, ALLOWED);
    let hash = RHash::from_value(value).ok_or_else(|| wrong(Wrong::Type))?;
    let mut tags: Vec<(String, String)> = Vec::new();
    hash.foreach(|name: Value, text: Value| {
        let (name, text) = labels::text(name).zip(labels::text(text)).ok_or_else(|| wrong(Wrong::Type))?;
        // A Symbol and a String may be the same name.
        let known = tags.iter().any(|(other, _)| *other == name);
        if known || !is_name(&name) || !is_value(&text) {
            return Err(wrong(Wrong::Value));
        }
        tags.push((name, text));
        Ok(ForEach::Continue)
    })?;
    Ok(tags.into())
}

/// A frozen Hash of Strings.
pub fn to_ruby(ruby: &Ruby, tags: &[(String, String)]) -> Value {
    let hash = ruby.hash_from_iter(tags.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    hash.freeze();
    hash.into_value_with(ruby)
}

fn is_name(name: &str) -> bool {
    name.len() <= MAX_BYTES
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && !name.starts_with("__")
        && name.chars().all(|each| each.is_ascii_alphanumeric() || matches!(each, '_' | '.'))
}

fn is_value(value: &str) -> bool {
    (1..=MAX_BYTES).contains(&value.len())
        && !value.chars().any(|each| matches!(each, ',' | '=' | '{' | '}') || each.is_control())
}
