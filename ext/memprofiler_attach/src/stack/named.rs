//! The names of calls.

use ruby_layout::function::{Function, ShownAt};
use ruby_layout::line;
use ruby_layout::memory::{Memory, Paged};
use ruby_layout::reader::Reader;
use ruby_layout::stack::Call;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A line of a backtrace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFrame {
    /// What is called.
    pub function: Rc<Function>,
    /// The file of the function, or of its caller if it has no place of its own.
    pub file: Rc<str>,
    /// The line in that file; 0 if unknown.
    pub line: u32,
}

/// For so long a name is taken to be that of what is at its address. A collection may give the address to other code.
const LIFE: Duration = Duration::from_secs(1);

/// Remembers names for a while.
#[derive(Debug)]
pub struct Names {
    since: Instant,
    /// Of calls, whatever instruction they run.
    functions: HashMap<Call, Rc<Function>>,
    lines: HashMap<Call, u32>,
}

impl Default for Names {
    fn default() -> Self {
        Self { since: Instant::now(), functions: HashMap::new(), lines: HashMap::new() }
    }
}

impl Names {
    /// Forgets what may have changed.
    pub fn refresh(&mut self) {
        if self.since.elapsed() >= LIFE {
            *self = Self::default();
        }
    }

    /// The lines of the backtrace of a stack, as the newest Ruby would write them. The outermost comes first.
    pub fn frames<M: Memory>(
        &mut self,
        reader: &Reader<Paged<M>>,
        calls: &[Call],
    ) -> Result<Vec<NamedFrame>, M::Error> {
        let mut frames: Vec<NamedFrame> = Vec::with_capacity(calls.len());
        for call in calls {
            let function = self.function(reader, *call)?;
            let (file, line) = match function.place {
                ShownAt::Caller => frames
                    .last()
                    .map_or((function.file.as_str().into(), 0), |caller| (Rc::clone(&caller.file), caller.line)),
                ShownAt::Own | ShownAt::InPlaceOfCaller => (function.file.as_str().into(), self.line(reader, *call)?),
            };
            if function.place == ShownAt::InPlaceOfCaller {
                frames.pop();
            }
            frames.push(NamedFrame { function, file, line });
        }
        Ok(frames)
    }

    fn function<M: Memory>(&mut self, reader: &Reader<Paged<M>>, call: Call) -> Result<Rc<Function>, M::Error> {
        let key = Call { index: 0, ..call };
        if let Some(known) = self.functions.get(&key) {
            return Ok(Rc::clone(known));
        }
        let function = match call.iseq {
            0 => reader.native_function(call.entry)?,
            iseq => reader.ruby_function(iseq, call.entry)?,
        };
        Ok(Rc::clone(self.functions.entry(key).or_insert(Rc::new(function))))
    }

    fn line<M: Memory>(&mut self, reader: &Reader<Paged<M>>, call: Call) -> Result<u32, M::Error> {
        if let Some(&known) = self.lines.get(&call) {
            return Ok(known);
        }
        let line = line(&reader.memory, reader.layout, call.iseq, call.index)?;
        self.lines.insert(call, line);
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_for_a_while() {
        let mut names = Names::default();
        names.lines.insert(Call { iseq: 8, entry: 0, code: 16, index: 0 }, 1);
        names.refresh();
        assert_eq!(names.lines.len(), 1);
        names.since -= LIFE;
        names.refresh();
        assert!(names.lines.is_empty());
    }
}
