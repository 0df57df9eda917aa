//! Writes JSON without building a `Value`, which would take ten times the memory; can be interrupted.

use crate::interrupt::{Interrupt, Interrupted};
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// `value` as JSON. All keys of its maps must be strings.
pub fn to_string(value: &impl Serialize, interrupt: &Interrupt) -> Result<String, Interrupted> {
    let mut output = Output { json: Vec::new(), steps: 0, interrupt };
    // Nothing else can fail: the output is in memory and valid UTF-8.
    serde_json::to_writer(&mut output, value).map_err(|_| Interrupted)?;
    String::from_utf8(output.json).map_err(|_| Interrupted)
}

/// Checks for interrupts as it is written to.
struct Output<'a> {
    json: Vec<u8>,
    steps: usize,
    interrupt: &'a Interrupt,
}

impl Write for Output<'_> {
    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.interrupt.at(self.steps).map_err(io::Error::other)?;
        self.steps += 1;
        self.json.extend_from_slice(bytes);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A list of the items of the function's iterator, created while it is written.
pub struct List<F>(pub F);

impl<F: Fn() -> I, I: IntoIterator<Item: Serialize>> Serialize for List<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_made_as_they_are_written() {
        let list = List(|| (0..3).map(|number| vec!["é\n"; number]));
        assert_eq!(to_string(&list, &Interrupt::default()), Ok(r#"[[],["é\n"],["é\n","é\n"]]"#.into()));
    }

    #[test]
    fn a_long_list_can_be_interrupted() {
        let interrupt = Interrupt::default();
        let list = List(|| {
            (0..100_000).inspect(|&number| {
                if number == 10 {
                    interrupt.strike()
                }
            })
        });
        assert_eq!(to_string(&list, &interrupt), Err(Interrupted));
    }
}
