//! What other processes say, for a terminal.

/// The text without control characters, which could be commands to the terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}
