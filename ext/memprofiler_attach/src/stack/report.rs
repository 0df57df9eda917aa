//! What is printed.

use super::named::NamedFrame;
use crate::failure::Failure;
use crate::text::{print, printable};
use ruby_layout::thread::Thread;
use serde::Serialize;
use std::fmt;
use std::io;

/// The threads of a Ruby.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The process; None of a core file.
    pub pid: Option<i32>,
    /// The version.
    pub ruby: String,
    /// Ractor by Ractor.
    pub threads: Vec<ThreadReport>,
}

/// A thread.
#[derive(Debug, Serialize)]
pub struct ThreadReport {
    tid: u32,
    name: Option<String>,
    main: bool,
    main_ractor: bool,
    gvl: bool,
    activity: &'static str,
    /// Whether no calls are missing at the end.
    complete: bool,
    /// Why there are no frames.
    error: Option<String>,
    /// The innermost first.
    frames: Vec<FrameReport>,
}

/// A line of a backtrace.
#[derive(Debug, Serialize)]
struct FrameReport {
    name: String,
    file: String,
    line: u32,
}

impl ThreadReport {
    /// With its frames, outermost first, and whether these are all.
    pub fn new(thread: Thread, activity: &'static str, stack: io::Result<(Vec<NamedFrame>, bool)>) -> Self {
        let (frames, complete, error) = match stack {
            Ok((frames, complete)) => (frames, complete, None),
            Err(error) => (Vec::new(), false, Some(error.to_string())),
        };
        let frames = frames.iter().rev().map(|frame| FrameReport {
            name: frame.function.name.clone(),
            file: frame.file.to_string(),
            line: frame.line,
        });
        Self {
            tid: thread.tid,
            name: thread.name,
            main: thread.is_main,
            main_ractor: thread.in_main_ractor,
            gvl: thread.has_gvl,
            activity,
            complete,
            error,
            frames: frames.collect(),
        }
    }
}

impl Report {
    /// To stdout, as text or JSON.
    pub fn print(&self, json: bool) -> Result<(), Failure> {
        let text = if json { serde_json::to_string(self) } else { Ok(self.to_string()) };
        let text = text.map_err(|error| Failure::new(format!("JSON: {error}")))?;
        print(format!("{}\n", text.trim_end()).as_bytes())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(formatter, "process {pid}, ")?,
            None => write!(formatter, "core file, ")?,
        }
        writeln!(formatter, "Ruby {}, threads: {}", self.ruby, self.threads.len())?;
        self.threads.iter().try_for_each(|thread| write!(formatter, "\n{thread}"))
    }
}

impl fmt::Display for ThreadReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Many threads of Ruby may share a few native ones.
        match self.tid {
            0 => write!(formatter, "thread without a native one")?,
            tid => write!(formatter, "thread {tid}")?,
        }
        match &self.name {
            Some(name) => write!(formatter, " {name:?}")?,
            None if self.main => write!(formatter, " (main)")?,
            None => (),
        }
        if !self.main_ractor {
            write!(formatter, " of another Ractor")?;
        }
        writeln!(formatter, ": {}", self.activity)?;
        match &self.error {
            Some(error) => writeln!(formatter, "  (its stack cannot be read: {error})")?,
            None if !self.complete => {
                writeln!(formatter, "  (calls that come and go faster than they can be read: --pause shows them)")?;
            }
            None => (),
        }
        self.frames.iter().try_for_each(|FrameReport { name, file, line }| {
            writeln!(formatter, "  {} {}:{line}", printable(name), printable(file))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_the_terminal_nothing() {
        let frames = vec![FrameReport { name: "a\u{1b}[2J".to_owned(), file: "b\nc".to_owned(), line: 7 }];
        let thread = ThreadReport {
            tid: 1,
            name: Some("\u{1b}d".to_owned()),
            main: false,
            main_ractor: true,
            gvl: false,
            activity: "waits",
            complete: true,
            error: None,
            frames,
        };
        assert_eq!(thread.to_string(), "thread 1 \"\\u{1b}d\": waits\n  a?[2J b?c:7\n");
    }
}
