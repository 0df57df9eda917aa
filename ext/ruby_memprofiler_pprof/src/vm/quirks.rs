//! What single patch releases do differently.

use magnus::{Error, Module, Ruby};

/// The quirks of the running Ruby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirks {
    /// Creating a Ractor while a NEWOBJ hook is on crashes the VM: `gc_event_hook_body` reads through the control
    /// frame of an execution context that has none yet.
    pub ractor_creation_crashes: bool,
}

type Version = (u32, u32, u32);

impl Quirks {
    /// The quirks of the Ruby that this process runs.
    pub fn current(ruby: &Ruby) -> Result<Self, Error> {
        let version: String = ruby.class_object().const_get("RUBY_VERSION")?;
        Ok(Self::of(parse(&version)))
    }

    fn of(version: Version) -> Self {
        let within = |first: Version, last: Version| (first..=last).contains(&version);
        Self { ractor_creation_crashes: within((3, 1, 0), (3, 1, 3)) || within((3, 2, 0), (3, 2, 2)) }
    }
}

fn parse(version: &str) -> Version {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next())
}
