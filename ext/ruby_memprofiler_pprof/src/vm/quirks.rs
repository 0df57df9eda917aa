//! Peculiarities of single patch releases.

use magnus::{Error, Module, Ruby};

/// The quirks of the running Ruby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirks {
    /// Creating a Ractor while a hook for NEWOBJ or a GC event is on crashes the VM: `gc_event_hook_body` reads through
    /// the control frame of an execution context that has none yet.
    pub ractor_creation_crashes: bool,
    /// With a NEWOBJ hook, `newobj_of` waits for the VM's lock between an object's allocation and its initialisation.
    /// If another Ractor starts a garbage collection then, it marks the stale contents of the slot.
    pub ractor_collection_crashes: bool,
}

type Version = (u32, u32, u32);

impl Quirks {
    /// The quirks of the Ruby that this process runs.
    pub fn current(ruby: &Ruby) -> Result<Self, Error> {
        Ok(Self::of(version(ruby)?))
    }

    /// Each known quirk: its name, what it means to a user, and whether this Ruby has it.
    pub fn all(self) -> [(&'static str, &'static str, bool); 2] {
        [
            (
                "ractor_creation_crashes",
                "creating a Ractor while allocations are traced crashes this Ruby, so profiling stops before that; \
                 3.1.4, 3.2.3 and later are not affected",
                self.ractor_creation_crashes,
            ),
            (
                "ractor_collection_crashes",
                "a garbage collection in another Ractor while allocations are traced may crash this Ruby, so \
                 profiling stops before a Ractor is created; 3.3 and 4.0 are not affected",
                self.ractor_collection_crashes,
            ),
        ]
    }

    /// Whether no Ractor may run while a NEWOBJ hook is on.
    pub fn forbid_ractors(self) -> bool {
        self.ractor_creation_crashes || self.ractor_collection_crashes
    }

    fn of(version: Version) -> Self {
        let within = |first: Version, last: Version| (first..=last).contains(&version);
        Self {
            ractor_creation_crashes: within((3, 1, 0), (3, 1, 3)) || within((3, 2, 0), (3, 2, 2)),
            ractor_collection_crashes: within((3, 4, 0), (3, 4, u32::MAX)),
        }
    }
}

/// The version of the Ruby that this process runs.
pub fn version(ruby: &Ruby) -> Result<Version, Error> {
    let version: String = ruby.class_object().const_get("RUBY_VERSION")?;
    Ok(parse(&version))
}

fn parse(version: &str) -> Version {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next())
}
