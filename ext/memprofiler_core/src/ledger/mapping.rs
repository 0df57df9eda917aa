//! The mappings of a process's addresses, as Linux lists them.

/// What is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: memory of the process's own.
    Anonymous,
    /// The same, grown by `brk`.
    Heap,
    /// The main thread's machine stack.
    Stack,
    /// A file, or memory that has a name like one.
    File,
    /// Pages of the kernel.
    System,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "[heap]" => Self::Heap,
            name if name.is_empty() || name.starts_with("[anon") => Self::Anonymous,
            name if name.starts_with("[stack") => Self::Stack,
            name if name.starts_with('[') => Self::System,
            _ => Self::File,
        }
    }
}

/// How much of a mapping is where, in bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// In memory.
    pub resident: u64,
    /// In memory, and no page of a file.
    pub anonymous: u64,
    /// In memory, and mapped by other processes as well.
    pub shared: u64,
    /// In memory, and mapped by this process alone.
    pub private: u64,
    /// In swap.
    pub swap: u64,
}

/// A mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The address behind its last.
    pub end: u64,
    /// Whether it can be read at all, which reserved addresses and guard pages cannot.
    pub readable: bool,
    /// Whether it can be written to.
    pub writable: bool,
    /// Whether it can be executed.
    pub executable: bool,
    /// What is mapped.
    pub kind: Kind,
    /// None where the list does not say it.
    pub usage: Option<Usage>,
}

impl Mapping {
    /// The mappings in `text`, the content of `/proc/PID/smaps` or of `/proc/PID/maps`, which lacks the usage.
    pub fn parse(text: &str) -> Vec<Self> {
        let mut mappings: Vec<Self> = Vec::new();
        for line in text.lines() {
            // A field of the usage begins with a capital letter.
            if line.starts_with(|first: char| first.is_ascii_uppercase()) {
                if let Some(last) = mappings.last_mut() {
                    last.add_field(line);
                }
            } else {
                mappings.extend(Self::parse_line(line));
            }
        }
        mappings
    }

    fn parse_line(line: &str) -> Option<Self> {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let permissions = rest.as_bytes().get(..3)?;
        // Permissions, offset, device and inode precede the name.
        let name = rest.splitn(5, ' ').nth(4).unwrap_or_default().trim_start();
        Some(Self {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            readable: permissions[0] == b'r',
            writable: permissions[1] == b'w',
            executable: permissions[2] == b'x',
            kind: Kind::of(name),
            usage: None,
        })
    }

    fn add_field(&mut self, line: &str) {
        let Some((name, value)) = line.split_once(':') else { return };
        let usage = self.usage.get_or_insert_default();
        let bytes = || kilobytes(value).unwrap_or(0);
        match name {
            "Rss" => usage.resident += bytes(),
            "Anonymous" => usage.anonymous += bytes(),
            "Shared_Clean" | "Shared_Dirty" => usage.shared += bytes(),
            "Private_Clean" | "Private_Dirty" => usage.private += bytes(),
            "Swap" => usage.swap += bytes(),
            _ => {}
        }
    }

    /// Its size in bytes, in memory or not.
    pub fn size(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// The bytes of a field such as `   12 kB`.
fn kilobytes(value: &str) -> Option<u64> {
    value.trim().strip_suffix(" kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}
