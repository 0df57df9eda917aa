//! `/proc/PID/status`.

use crate::failure::Failure;
use std::collections::HashMap;
use std::{fs, io};

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It runs, waits or sleeps.
    Alive,
    /// A signal has stopped it.
    Stopped,
    /// A tracer has stopped it.
    Traced,
    /// It has ended.
    Ended,
}

/// The fields by name.
#[derive(Debug)]
pub struct Status(HashMap<String, String>);

impl Status {
    /// That of process or thread `pid`.
    pub fn of(pid: i32) -> Result<Self, Failure> {
        match fs::read(format!("/proc/{pid}/status")) {
            Ok(text) => Ok(Self::parse(&String::from_utf8_lossy(&text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Failure::new(format!("there is no process {pid}")))
            }
            Err(error) => Err(Failure::new(format!("/proc/{pid}/status: {error}"))),
        }
    }

    /// That of a file of this kind; None if it cannot be read.
    pub fn of_file(path: &str) -> Option<Self> {
        Some(Self::parse(&String::from_utf8_lossy(&fs::read(path).ok()?)))
    }

    /// From the text of the file.
    pub fn parse(text: &str) -> Self {
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        Self(fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect())
    }

    /// The text of a field; empty if this kernel lacks it.
    pub fn field(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// What the process does.
    pub fn state(&self) -> State {
        match self.field("State").as_bytes().first() {
            Some(b'T') => State::Stopped,
            Some(b't') => State::Traced,
            Some(b'Z' | b'X' | b'x') => State::Ended,
            _ => State::Alive,
        }
    }

    /// The process that traces it.
    pub fn tracer(&self) -> Option<i32> {
        self.field("TracerPid").parse().ok().filter(|&pid| pid != 0)
    }

    /// Its id in its own PID namespace.
    pub fn own_id(&self) -> Option<i32> {
        self.field("NSpid").split_ascii_whitespace().last().and_then(|id| id.parse().ok())
    }

    /// The process to which the thread belongs.
    pub fn process(&self) -> Option<i32> {
        self.field("Tgid").parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_fields() {
        let status = Status::parse("Name:\truby\nState:\tT (stopped)\nTgid:\t12\nTracerPid:\t0\nUid:\t0\t1\t0\t0\n");
        assert_eq!(status.state(), State::Stopped);
        assert_eq!((status.process(), status.tracer()), (Some(12), None));
        assert_eq!((status.own_id(), Status::parse("NSpid:\t12\t3\n").own_id()), (None, Some(3)));
        assert_eq!((status.field("Uid"), status.field("CapEff")), ("0\t1\t0\t0", ""));
    }

    #[test]
    fn names_a_missing_process() {
        assert_eq!(Status::of(i32::MAX).map(|_| ()), Err(Failure::new("there is no process 2147483647")));
    }
}
