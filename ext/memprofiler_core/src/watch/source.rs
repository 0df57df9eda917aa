//! Reads how much memory is in use, from files of Linux that stay open.

use super::kept_file::KeptFile;
use crate::cgroup::{self, Files};
use crate::linux::{self, field, kilobytes};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long everything but the memory in use is believed, since it takes longer to read: while memory moves, and while
/// it does not.
const BELIEVED: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(50)];

/// Memory has moved if it is so many bytes more or less.
const MOVED: u64 = 1_000_000;

/// Another cgroup takes the place of the one that is watched when it leaves less than this part of what that leaves.
const TIGHTER: f64 = 0.8;

/// What is in use now.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Which cgroup this is about: figures of another one cannot be compared with these.
    pub group: usize,
    /// The limit of the cgroup in bytes; None if there is none, or it is unknown.
    pub limit: Option<u64>,
    /// Bytes that all processes of the cgroup use, without files that the kernel would give up first.
    pub usage: Option<u64>,
    /// Bytes that this process has in physical memory; 0 if unknown.
    pub resident: u64,
    /// How often the kernel has looked for a process to kill.
    pub kills: u64,
    /// How often the limit was reached, so that something had to be given up.
    pub reached: u64,
    /// For how long some task has waited for memory; None without PSI.
    pub stalled: Option<Duration>,
    /// When the kernel said so, and how often the limit was reached.
    pub reported: Duration,
    /// Whether there is a copy of this process, which counts as well, and is killed first.
    pub copied: bool,
}

/// The files. They belong to the process that opened them: a forked child needs its own.
#[derive(Debug)]
pub struct Source {
    /// Where all files are, which is "/" but for tests.
    root: PathBuf,
    page_size: u64,
    resident: Option<KeptFile>,
    /// The cgroups that the process is in and that can have a limit, from the innermost on.
    groups: Vec<Group>,
    /// The one that leaves the least.
    tightest: Option<usize>,
    /// The last reading of everything.
    last: Option<Reading>,
}

/// A cgroup that has a limit, or may get one.
#[derive(Debug)]
struct Group {
    limit: KeptFile,
    usage: KeptFile,
    stat: Option<KeptFile>,
    files: &'static Files,
    /// The size in bytes of the page cache that the kernel gives up first, when it was measured.
    cache: u64,
    /// See [`Files::events`].
    events: Option<KeptFile>,
    pressure: Option<KeptFile>,
}

impl Source {
    /// Finds the files below `root`.
    pub fn open(root: &Path, page_size: u64) -> Self {
        Self {
            root: root.to_owned(),
            page_size,
            // Not status, which takes five times as long to read.
            resident: KeptFile::open(&root.join("proc/self/statm")),
            groups: cgroup::all(root).filter_map(|(path, files)| Group::open(&path, files)).collect(),
            tightest: None,
            last: None,
        }
    }

    /// Whether it can tell what the process has in memory.
    pub fn sees_process(&self) -> bool {
        self.resident.is_some()
    }

    /// Whether there is a limit now.
    pub fn has_limit(&self) -> bool {
        self.groups.iter().any(|group| group.limit().is_some())
    }

    /// The bytes that this process has in physical memory and shares with no other; None if unknown. Takes some 12 ms
    /// per GB.
    pub fn unshared(&self) -> Option<u64> {
        // Not kept open, since it is read once in a while.
        let text = linux::read(self.root.join("proc/self/smaps_rollup")).ok()?;
        Some(kilobytes(&text, "Private_Clean")? + kilobytes(&text, "Private_Dirty")?)
    }

    /// Reads how much is in use, and the rest if that was some time ago; `now` is the time since any moment.
    pub fn read(&mut self, now: Duration) -> Reading {
        if self.resident.as_ref().is_some_and(|file| file.get().is_none()) {
            // The program has closed them.
            *self = Self::open(&self.root, self.page_size);
        }
        if let Some(last) = self.last {
            let reading = self.memory(last);
            let moved = last.resident.abs_diff(reading.resident) >= MOVED
                || last.usage.unwrap_or(0).abs_diff(reading.usage.unwrap_or(0)) >= MOVED;
            if now.saturating_sub(last.reported) < BELIEVED[usize::from(!moved)] {
                return reading;
            }
        }
        let reading = self.everything(now);
        self.last = Some(reading);
        reading
    }

    /// A reading with the memory that is in use now, and the rest of `last`.
    fn memory(&self, last: Reading) -> Reading {
        let pages = self.resident.as_ref().and_then(|file| read(file, |text| text.split(' ').nth(1)?.parse().ok()));
        Reading {
            resident: pages.unwrap_or(0) * self.page_size,
            usage: self.tightest.and_then(|number| self.groups.get(number)?.usage()),
            ..last
        }
    }

    fn everything(&mut self, now: Duration) -> Reading {
        self.groups.iter_mut().for_each(Group::measure_cache);
        self.choose();
        let mut reading = Reading { reported: now, ..Reading::default() };
        if let Some((number, group)) = self.tightest.and_then(|number| Some((number, self.groups.get(number)?))) {
            (reading.group, reading.limit) = (number, group.limit());
            if let Some(events) = &group.events {
                (reading.kills, reading.reached) = read(events, |text| Some(counts(text))).unwrap_or_default();
            }
            reading.stalled = group.pressure.as_ref().and_then(|file| read(file, stalled));
        }
        self.memory(reading)
    }

    /// Which limit is the tightest changes as other processes come and go. Not for every little difference: with each
    /// change, how fast memory grows has to be learnt again.
    fn choose(&mut self) {
        if let ([_], Some(_)) = (&self.groups[..], self.tightest) {
            return;
        }
        let left = |number: usize| self.groups.get(number)?.left();
        let all = (0..self.groups.len()).filter_map(|number| Some((number, left(number)?)));
        let Some((number, least)) = all.min_by_key(|&(_, left)| left) else { return };
        if self.tightest.and_then(left).is_none_or(|now| (least as f64) < now as f64 * TIGHTER) {
            self.tightest = Some(number);
        }
    }
}

impl Group {
    fn open(path: &Path, files: &'static Files) -> Option<Self> {
        let file = |name: &str| KeptFile::open(&path.join(name));
        Some(Self {
            limit: file(files.limit)?,
            usage: file(files.usage)?,
            stat: file("memory.stat"),
            files,
            cache: 0,
            events: files.events.iter().find_map(|name| file(name)),
            // Without version 2 only the machine has pressure, which says nothing about this cgroup.
            pressure: file("memory.pressure").filter(|file| read(file, stalled).is_some()),
        })
    }

    /// None if there is none, which can change.
    fn limit(&self) -> Option<u64> {
        read(&self.limit, cgroup::limit)
    }

    /// Without the page cache.
    fn usage(&self) -> Option<u64> {
        number(&self.usage).map(|usage| usage.saturating_sub(self.cache))
    }

    fn left(&self) -> Option<u64> {
        Some(self.limit()?.saturating_sub(self.usage()?))
    }

    /// Not without a limit, which needs no usage.
    fn measure_cache(&mut self) {
        let stat = self.stat.as_ref().filter(|_| self.limit().is_some());
        self.cache = stat.and_then(|stat| read(stat, |text| field(text, self.files.cache))).unwrap_or(0);
    }
}

/// What `parse` makes of a file's text, of which it sees the first 8 KB.
fn read<T>(file: &KeptFile, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    let mut buffer = [0; 8192];
    let length = file.get()?.read_at(&mut buffer, 0).ok()?;
    // The name of the program has any bytes.
    parse(&String::from_utf8_lossy(buffer.get(..length)?))
}

fn number(file: &KeptFile) -> Option<u64> {
    read(file, |text| text.trim().parse().ok())
}

/// How often a process was to be killed, and the limit was reached: from memory.events.local, or the one number of
/// memory.failcnt.
fn counts(text: &str) -> (u64, u64) {
    let count = |name| field(text, name).unwrap_or(0);
    match text.trim().parse() {
        Ok(failures) => (0, failures),
        Err(_) => (count("oom"), count("max") + count("high")),
    }
}

/// The total of the line "some" of memory.pressure, which is in microseconds.
fn stalled(text: &str) -> Option<Duration> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some.split(' ').find_map(|part| part.strip_prefix("total="))?;
    total.parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A directory with the files of a system, removed when dropped.
    struct System(PathBuf);

    impl System {
        fn new(files: &[(&str, &str)]) -> Self {
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            let name = format!("watch-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            let system = Self(std::env::temp_dir().join(name));
            files.iter().for_each(|(path, text)| system.write(path, text));
            system
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn open(&self) -> Source {
            Source::open(&self.0, 4096)
        }

        fn read(&self) -> Reading {
            self.open().read(Duration::ZERO)
        }
    }

    impl Drop for System {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const VERSION_2: [(&str, &str); 6] = [
        ("proc/self/cgroup", "0::/a\n"),
        ("sys/fs/cgroup/a/memory.max", "3000\n"),
        ("sys/fs/cgroup/a/memory.current", "1000\n"),
        ("sys/fs/cgroup/a/memory.stat", "anon 600\ninactive_file 300\nactive_file 100\n"),
        ("sys/fs/cgroup/a/memory.events", "low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\noom_group_kill 0\n"),
        (
            "sys/fs/cgroup/a/memory.pressure",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n",
        ),
    ];

    #[test]
    fn version_2_tells_everything() {
        let expected = Reading {
            group: 0,
            limit: Some(3000),
            usage: Some(700),
            kills: 3,
            reached: 3,
            stalled: Some(Duration::from_micros(2500)),
            reported: Duration::ZERO,
            resident: 0,
            copied: false,
        };
        assert_eq!(System::new(&VERSION_2).read(), expected);
    }

    #[test]
    fn a_kernel_without_psi_tells_the_rest() {
        let reading = System::new(&VERSION_2[..5]).read();
        assert_eq!((reading.stalled, reading.usage), (None, Some(700)));
    }

    #[test]
    fn version_1_counts_failures() {
        let system = System::new(&[
            ("proc/self/cgroup", "4:memory:/b\n0::/\n"),
            ("proc/self/statm", "900 50 20 1 0 70 0\n"),
            ("sys/fs/cgroup/memory/b/memory.limit_in_bytes", "3000\n"),
            ("sys/fs/cgroup/memory/b/memory.usage_in_bytes", "1000\n"),
            ("sys/fs/cgroup/memory/b/memory.stat", "inactive_file 1\ntotal_inactive_file 400\n"),
            ("sys/fs/cgroup/memory/b/memory.failcnt", "5\n"),
        ]);
        let expected =
            Reading { limit: Some(3000), usage: Some(600), resident: 200 << 10, reached: 5, ..Reading::default() };
        assert_eq!(system.read(), expected);
    }

    #[test]
    fn the_cgroup_that_leaves_the_least_counts() {
        let mut files = VERSION_2.to_vec();
        files.extend([("sys/fs/cgroup/memory.max", "5000\n"), ("sys/fs/cgroup/memory.current", "4900\n")]);
        assert_eq!(System::new(&files).read().limit, Some(5000));
    }

    #[test]
    fn the_cgroup_that_leaves_the_least_changes() {
        let mut files = VERSION_2.to_vec();
        files.extend([("sys/fs/cgroup/memory.max", "5000\n"), ("sys/fs/cgroup/memory.current", "4900\n")]);
        let system = System::new(&files);
        let mut source = system.open();
        let mut now = Duration::ZERO;
        let mut limit = |usage: &str| {
            system.write("sys/fs/cgroup/memory.current", usage);
            now += BELIEVED[1];
            let reading = source.read(now);
            (reading.group, reading.limit)
        };
        assert_eq!(limit("4900\n"), (1, Some(5000)));
        assert_eq!(limit("1000\n"), (0, Some(3000)));
        // It would leave 2200 of the other's 2300.
        assert_eq!(limit("2800\n"), (0, Some(3000)));
        assert_eq!(limit("4000\n"), (1, Some(5000)));
    }

    #[test]
    fn a_cgroup_may_get_a_limit_later() {
        let mut files = VERSION_2.to_vec();
        files.extend([("sys/fs/cgroup/memory.max", "max\n"), ("sys/fs/cgroup/memory.current", "4900\n")]);
        let system = System::new(&files);
        let mut source = system.open();
        assert_eq!(source.read(Duration::ZERO).limit, Some(3000));
        system.write("sys/fs/cgroup/memory.max", "5000\n");
        assert_eq!(source.read(BELIEVED[1]).limit, Some(5000));
    }

    #[test]
    fn what_happens_to_cgroups_below_does_not_count() {
        let mut files = VERSION_2.to_vec();
        files.push(("sys/fs/cgroup/a/memory.events.local", "low 0\nhigh 0\nmax 1\noom 0\noom_kill 9\n"));
        let reading = System::new(&files).read();
        assert_eq!((reading.kills, reading.reached), (0, 1));
    }

    #[test]
    fn what_is_shared_with_other_processes_is_known() {
        let rollup = "00400000-7ffc [rollup]\nRss: 900 kB\nShared_Clean: 400 kB\nPrivate_Clean: 200 kB\n\
                      Private_Dirty: 300 kB\n";
        let system = System::new(&[("proc/self/smaps_rollup", rollup)]);
        assert_eq!(system.open().unshared(), Some(500 << 10));
        assert_eq!(System::new(&[]).open().unshared(), None);
    }

    #[test]
    fn no_limit_is_none() {
        for limit in ["max\n", "9223372036854771712\n"] {
            let system = System::new(&VERSION_2);
            system.write("sys/fs/cgroup/a/memory.max", limit);
            assert!(!system.open().has_limit(), "{limit}");
        }
        assert_eq!(System::new(&[]).read(), Reading::default());
    }

    #[test]
    fn what_is_in_use_is_read_each_time_and_the_rest_less_often() {
        let system = System::new(&VERSION_2);
        let mut source = system.open();
        let mut look = |millis| {
            let reading = source.read(Duration::from_millis(millis));
            (reading.usage, reading.limit, reading.reached, reading.reported.as_millis())
        };
        assert_eq!(look(0), (Some(700), Some(3000), 3, 0));
        system.write("sys/fs/cgroup/a/memory.current", "1500\n");
        system.write("sys/fs/cgroup/a/memory.stat", "inactive_file 0\n");
        system.write("sys/fs/cgroup/a/memory.max", "4000\n");
        system.write("sys/fs/cgroup/a/memory.events", "max 9\n");
        assert_eq!(look(49), (Some(1200), Some(3000), 3, 0));
        assert_eq!(look(50), (Some(1500), Some(4000), 9, 50));
    }

    #[test]
    fn the_rest_is_read_more_often_while_memory_moves() {
        let system = System::new(&[&VERSION_2[..], &[("proc/self/statm", "900 50 20 1 0 70 0\n")]].concat());
        let mut source = system.open();
        let mut reported = |millis| source.read(Duration::from_millis(millis)).reported.as_millis();
        assert_eq!(reported(0), 0);
        system.write("sys/fs/cgroup/a/memory.current", "1001000\n");
        assert_eq!([reported(19), reported(20)], [0, 20]);
        system.write("proc/self/statm", "900 300 20 1 0 70 0\n");
        assert_eq!([reported(39), reported(40), reported(60)], [20, 40, 40]);
    }
}
