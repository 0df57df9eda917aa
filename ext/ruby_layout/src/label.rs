//! The labels of Ruby code, as the VM keeps them: `foo`, `block (2 levels) in foo`, `rescue in block in foo`.

/// The file names of the VM's own Ruby code begin with this.
pub const INTERNAL: &str = "<internal:";

/// Whether a class has this name permanently. A class that is not a constant yet has a name like `#<Class:0x…>`, or a
/// temporary name, which must not look like a constant.
pub fn is_constant_path(name: &str) -> bool {
    name.split("::").all(|part| {
        part.starts_with(|first: char| first.is_uppercase() || (!first.is_ascii() && !first.is_lowercase()))
    })
}

/// The nesting depth in blocks of code with this label: 1 for `block in foo`, 2 for `block (2 levels) in foo`. Newer
/// Rubies do not mention rescue and ensure bodies, which come first.
pub fn blocks(label: &str, base: &str) -> u32 {
    let mut prefix = label.strip_suffix(base).unwrap_or_default();
    while let Some(rest) = prefix.strip_prefix("rescue in ").or_else(|| prefix.strip_prefix("ensure in ")) {
        prefix = rest;
    }
    match prefix.strip_prefix("block (").and_then(|rest| rest.split_once(' ')) {
        Some((levels, _)) => levels.parse().unwrap_or(1),
        None => u32::from(prefix.starts_with("block in ")),
    }
}

/// What precedes a method's name in a label so deeply nested in blocks.
pub fn block_prefix(blocks: u32) -> String {
    match blocks {
        0 => String::new(),
        1 => "block in ".to_owned(),
        _ => format!("block ({blocks} levels) in "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_blocks() {
        let labels = ["foo", "block in foo", "block (3 levels) in foo", "rescue in block in foo"];
        assert_eq!(labels.map(|label| blocks(label, "foo")), [0, 1, 3, 1]);
        assert_eq!([0, 1, 3].map(block_prefix), ["", "block in ", "block (3 levels) in "]);
    }

    #[test]
    fn knows_constants() {
        assert_eq!(["A::B", "Ä", "#<Class:0x1>::A", "a"].map(is_constant_path), [true, true, false, false]);
    }
}
