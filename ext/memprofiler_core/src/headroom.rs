//! How much more memory the system would give to this process, as Linux's own files say.
//!
//! A limit that cannot be read is taken not to exist: the system still has the last word.

use crate::cgroup::{self, Files};
use crate::linux::{self, field, kilobytes};
use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};

/// What is known about the memory of this process and of the system.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Headroom {
    /// What each limit leaves.
    pub bounds: Vec<Bound>,
    /// The bytes of memory of this process that a copy of it would share with it until either of them writes there.
    pub anonymous: u64,
    /// Whether the kernel would kill all processes of this process's cgroup if one of them asks for too much.
    pub killed_together: bool,
}

/// What one limit leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Bytes.
    pub left: u64,
    /// Which limit.
    pub by: Limit,
}

/// A limit on memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limit {
    /// The memory of the machine.
    Machine,
    /// What the kernel promises at most, where it promises no more than it has.
    Overcommit,
    /// RLIMIT_AS.
    AddressSpace,
    /// The file with the limit of a cgroup.
    Cgroup(PathBuf),
}

impl Display for Limit {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Machine => f.write_str("the machine"),
            Self::Overcommit => f.write_str("vm.overcommit_memory=2"),
            Self::AddressSpace => f.write_str("the limit on the address space (ulimit -v)"),
            Self::Cgroup(file) => write!(f, "the cgroup's limit ({})", file.display()),
        }
    }
}

impl Headroom {
    /// Reads it from the files of Linux below `root`, which is "/" but for tests. Takes some 0.1 ms.
    pub fn read(root: &Path) -> Self {
        let file = |path: &str| linux::read(root.join(path)).unwrap_or_default();
        let (status, machine) = (file("proc/self/status"), file("proc/meminfo"));
        let mut headroom = Self { anonymous: kilobytes(&status, "RssAnon").unwrap_or(0), ..Self::default() };
        headroom.add(Limit::Machine, kilobytes(&machine, "MemAvailable"));
        if file("proc/sys/vm/overcommit_memory").trim() == "2" {
            headroom.add(Limit::Overcommit, promises(&machine, &status));
        }
        headroom.add(Limit::AddressSpace, address_space(&file("proc/self/limits"), &status));
        cgroup::all(root).for_each(|(group, files)| headroom.add_cgroup(&group, files));
        headroom
    }

    /// The limit that leaves the least.
    pub fn tightest(&self) -> Option<&Bound> {
        self.bounds.iter().min_by_key(|bound| bound.left)
    }

    fn add(&mut self, by: Limit, left: Option<u64>) {
        self.bounds.extend(left.map(|left| Bound { left, by }));
    }

    /// The limits of a cgroup.
    fn add_cgroup(&mut self, group: &Path, files: &Files) {
        let number = |name: &str| linux::read(group.join(name)).ok()?.trim().parse::<u64>().ok();
        let Some(used) = number(files.usage) else { return };
        let cache = field(&linux::read(group.join("memory.stat")).unwrap_or_default(), files.cache).unwrap_or(0);
        for name in files.limits {
            let limit = linux::read(group.join(name)).ok().and_then(|text| cgroup::limit(&text));
            let left = limit.map(|limit| limit.saturating_sub(used.saturating_sub(cache)));
            self.add(Limit::Cgroup(group.join(name)), left);
        }
        self.killed_together |= number("memory.oom.group") == Some(1);
    }
}

/// What the kernel still promises after it has promised the copy all that this process can write to.
fn promises(machine: &str, status: &str) -> Option<u64> {
    let (most, promised) = (kilobytes(machine, "CommitLimit")?, kilobytes(machine, "Committed_AS")?);
    Some(most.saturating_sub(promised).saturating_sub(kilobytes(status, "VmData")?))
}

/// A quarter of the unused addresses: a copy never uses an address for a second block.
fn address_space(limits: &str, status: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let soft: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(soft.saturating_sub(kilobytes(status, "VmSize")?) / 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A directory with the files of a system, removed when dropped.
    struct System(PathBuf);

    impl System {
        fn new(files: &[(&str, &str)]) -> Self {
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            let name = format!("headroom-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            let root = std::env::temp_dir().join(name);
            for (path, text) in files {
                let path = root.join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Self(root)
        }

        fn headroom(&self) -> Headroom {
            Headroom::read(&self.0)
        }

        /// What the limits leave, by the names that messages give them.
        fn left(&self) -> Vec<(String, u64)> {
            let bounds = self.headroom().bounds.into_iter();
            let name = |limit: Limit| limit.to_string().replace(&format!("{}/sys/fs/cgroup", self.0.display()), "");
            bounds.map(|bound| (name(bound.by), bound.left)).collect()
        }
    }

    impl Drop for System {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const STATUS: (&str, &str) =
        ("proc/self/status", "Name:\truby\nVmSize:\t  1000 kB\nRssAnon:\t     300 kB\nVmData:\t     500 kB\n");
    const MACHINE: (&str, &str) =
        ("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    4000 kB\nCommitLimit: 8000 kB\nCommitted_AS: 7000 kB\n");

    #[test]
    fn knows_the_machine_and_this_process() {
        let system = System::new(&[STATUS, MACHINE, ("proc/sys/vm/overcommit_memory", "0\n")]);
        assert_eq!(system.left(), [("the machine".into(), 4000 << 10)]);
        assert_eq!((system.headroom().anonymous, system.headroom().killed_together), (300 << 10, false));
    }

    #[test]
    fn without_overcommit_the_copy_is_promised_all_that_the_process_was() {
        let system = System::new(&[STATUS, MACHINE, ("proc/sys/vm/overcommit_memory", "2\n")]);
        assert_eq!(system.left()[1], ("vm.overcommit_memory=2".into(), (8000 - 7000 - 500) << 10));
    }

    #[test]
    fn a_limit_on_addresses_leaves_a_quarter_of_the_rest() {
        let limits =
            |soft: &str| format!("Limit    Soft Limit  Hard Limit  Units\nMax address space  {soft}  9  bytes\n");
        let bounded = System::new(&[STATUS, ("proc/self/limits", &limits("5120000"))]);
        assert_eq!(bounded.left(), [("the limit on the address space (ulimit -v)".into(), (5000 - 1000) << 8)]);
        assert_eq!(System::new(&[STATUS, ("proc/self/limits", &limits("unlimited"))]).left(), []);
    }

    #[test]
    fn cgroups_of_version_2_are_all_that_the_process_is_in() {
        let system = System::new(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/memory.current", "700\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.high", "900\n"),
            ("sys/fs/cgroup/a/b/memory.stat", "anon 600\ninactive_file 50\n"),
            ("sys/fs/cgroup/a/memory.current", "1000\n"),
            ("sys/fs/cgroup/a/memory.max", "1100\n"),
        ]);
        let name = |file: &str| format!("the cgroup's limit ({file})");
        assert_eq!(system.left(), [(name("/a/b/memory.high"), 250), (name("/a/memory.max"), 100)]);
        assert_eq!(system.headroom().tightest().map(|bound| bound.left), Some(100));
    }

    #[test]
    fn a_cgroup_of_which_too_much_is_used_leaves_nothing() {
        let system = System::new(&[
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.current", "700\n"),
            ("sys/fs/cgroup/memory.max", "600\n"),
        ]);
        assert_eq!(system.headroom().tightest().map(|bound| bound.left), Some(0));
    }

    #[test]
    fn cgroups_of_version_1_are_mounted_by_controller() {
        let system = System::new(&[
            ("proc/self/cgroup", "5:cpu,cpuacct:/c\n4:memory:/not/visible/here\n0::/\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "700\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n"),
            ("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 200\n"),
        ]);
        assert_eq!(system.left(), [("the cgroup's limit (/memory/memory.limit_in_bytes)".into(), 500)]);
    }

    #[test]
    fn says_whether_the_whole_cgroup_would_be_killed() {
        let system = System::new(&[
            ("proc/self/cgroup", "0::/a\n"),
            ("sys/fs/cgroup/a/memory.current", "1\n"),
            ("sys/fs/cgroup/a/memory.oom.group", "1\n"),
        ]);
        assert!(system.headroom().killed_together);
    }

    #[test]
    fn nothing_is_known_without_such_files() {
        assert_eq!(System::new(&[]).headroom(), Headroom::default());
    }
}
