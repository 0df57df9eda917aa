//! Where all of a process's memory is: lines that add up to what it has in memory.
//!
//! Linux's lists are read as [`Mapping`]s and [`Process`]; a [`Survey`] finds what is where, page by page; and an
//! [`Account`] of that and of what Ruby and the allocator say becomes the lines of a [`Ledger`].

mod account;
mod estimate;
mod glibc;
mod held_slots;
mod limit;
mod line;
mod mapping;
mod process;
mod residency;
mod survey;
pub mod utc;

pub use account::Account;
pub use estimate::estimate;
pub use held_slots::{HeapPage, HeldSlots, Site, held_slots};
pub use limit::Limit;
pub use line::{Figure, Key, Line, Source};
pub use mapping::{Kind, Mapping, Usage};
pub use process::{Process, stack_pointer};
pub use residency::{Residency, WORD};
pub use survey::{Places, Space, Survey};

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The version of the format.
const VERSION: u32 = 1;

/// Where the memory of a process is; the fields are those of its JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// Of the format.
    pub version: u32,
    /// The process.
    pub pid: u32,
    /// When: UTC, as in RFC 3339.
    pub time: String,
    /// Whether the heap was walked.
    pub full: bool,
    /// How long it took.
    pub elapsed_nanoseconds: u64,
    /// What the process has in memory; None if unknown, as are all of these.
    pub rss_bytes: Option<u64>,
    /// At most so far.
    pub peak_rss_bytes: Option<u64>,
    /// In swap.
    pub swap_bytes: Option<u64>,
    /// The line of that name.
    pub unexplained_bytes: Option<u64>,
    /// Pages that other processes map, too.
    pub shared_bytes: Option<u64>,
    /// Pages that only this process maps.
    pub private_bytes: Option<u64>,
    /// The allocator and its version.
    pub allocator: String,
    /// The tightest limit on its cgroups.
    pub limit: Option<Limit>,
    /// In the order of their keys.
    pub lines: Vec<Line>,
    /// Which sites hold the most free slots.
    pub held_slots: Vec<HeldSlots>,
    /// Pages of the heap without objects, which are free slots; only a walk knows them.
    pub empty_page_bytes: Option<u64>,
    /// Private pages that were shared when the process was forked.
    pub copied_bytes: Option<u64>,
}

impl Ledger {
    /// A ledger of these lines; the rest is unknown.
    pub fn new(pid: u32, since_1970: Duration, account: Account) -> Self {
        let (rss_bytes, lines) = (account.resident, account.lines());
        let unexplained = lines.iter().find(|line| line.key == Key::Unexplained);
        Self {
            version: VERSION,
            pid,
            time: utc::format(since_1970.as_secs()),
            full: false,
            elapsed_nanoseconds: 0,
            rss_bytes,
            peak_rss_bytes: None,
            swap_bytes: None,
            unexplained_bytes: unexplained.and_then(|line| line.bytes),
            shared_bytes: None,
            private_bytes: None,
            allocator: String::new(),
            limit: None,
            lines,
            held_slots: Vec::new(),
            empty_page_bytes: None,
            copied_bytes: None,
        }
    }
}
