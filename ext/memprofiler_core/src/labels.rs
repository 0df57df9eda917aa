//! Labels that a program attaches to its allocations: a few pairs of strings.

use std::sync::Arc;

/// One key and its value.
pub type Pair = (Arc<str>, Arc<str>);

/// The key of thread names.
pub const THREAD: &str = "thread";

/// Pairs with distinct keys, sorted by key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct LabelSet(Vec<Pair>);

impl LabelSet {
    /// The maximum number of pairs in a set.
    pub const MAX_PAIRS: usize = 16;
    /// The maximum length of a key or value, in bytes.
    pub const MAX_BYTES: usize = 256;

    /// A set of one pair. A value that is too long is truncated.
    pub fn of(key: &str, value: &str) -> Self {
        Self(vec![(key.into(), cut(value).into())])
    }

    /// The pairs.
    pub fn pairs(&self) -> &[Pair] {
        &self.0
    }

    /// The value of `key`, if it has one.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| **known == *key).map(|(_, value)| &**value)
    }

    /// Sets the value of `key`, or removes it if `value` is None. A value that is too long is truncated.
    pub fn set(&mut self, key: &str, value: Option<&str>) {
        let place = self.0.binary_search_by(|(known, _)| (**known).cmp(key));
        match (place, value.map(cut)) {
            (Ok(at), Some(value)) => self.0[at].1 = value.into(),
            (Ok(at), None) => drop(self.0.remove(at)),
            (Err(at), Some(value)) => self.0.insert(at, (key.into(), value.into())),
            (Err(_), None) => {}
        }
    }

    /// The total length of the strings, in bytes.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|(key, value)| size_of::<Pair>() + key.len() + value.len()).sum()
    }
}

/// Truncates a text, at a character boundary.
fn cut(text: &str) -> &str {
    let end = (0..=text.len().min(LabelSet::MAX_BYTES)).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> LabelSet {
        let mut labels = LabelSet::default();
        pairs.iter().for_each(|(key, value)| labels.set(key, Some(value)));
        labels
    }

    #[test]
    fn order_does_not_matter() {
        assert_eq!(labels(&[("a", "1"), ("b", "2")]), labels(&[("b", "2"), ("a", "1")]));
    }

    #[test]
    fn a_key_has_its_last_value() {
        assert_eq!(labels(&[("a", "1"), ("a", "2")]), labels(&[("a", "2")]));
    }

    #[test]
    fn no_value_removes_the_key() {
        let mut set = labels(&[("a", "1"), ("b", "2")]);
        set.set("a", None);
        assert_eq!(set, labels(&[("b", "2")]));
    }

    #[test]
    fn a_long_value_is_cut_between_characters() {
        let value = format!("a{}", "ü".repeat(LabelSet::MAX_BYTES));
        let set = labels(&[("a", &value)]);
        assert_eq!(set.pairs()[0].1.len(), LabelSet::MAX_BYTES - 1);
    }
}
