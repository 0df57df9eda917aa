//! What is printed.

use crate::failure::Failure;
use std::io::{self, Write};

/// Writes to stdout. That it is closed or full is a failure, and no panic as with `println!`.
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    let written = io::stdout().write_all(bytes).and_then(|()| io::stdout().flush());
    written.map_err(|error| Failure::new(format!("stdout: {error}")))
}

/// What other processes say: the text without control characters, which could be commands to the terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}
