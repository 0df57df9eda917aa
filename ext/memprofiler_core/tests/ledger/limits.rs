//! The limit on a process.

use memprofiler_core::ledger::Limit;
use std::fs::{create_dir_all, remove_dir_all, write};
use std::path::PathBuf;

struct Root(PathBuf);

impl Root {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let root = std::env::temp_dir().join(format!("memprofiler-limit-{name}-{}", std::process::id()));
        for (path, content) in files {
            let path = root.join(path);
            create_dir_all(path.parent().unwrap()).unwrap();
            write(path, content).unwrap();
        }
        Self(root)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = remove_dir_all(&self.0);
    }
}

#[test]
fn the_tightest_limit_counts() {
    let root = Root::new(
        "v2",
        &[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/memory.current", "700\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.high", "900\n"),
            ("sys/fs/cgroup/a/b/memory.stat", "anon 600\ninactive_file 50\n"),
            ("sys/fs/cgroup/a/memory.current", "1000\n"),
            ("sys/fs/cgroup/a/memory.max", "1100\n"),
        ],
    );
    let limit = Limit { bytes: 1100, usage_bytes: 1000, kind: "cgroup v2".into() };
    assert_eq!(Limit::read(&root.0), Some(limit));
}

#[test]
fn the_first_version_has_a_number_for_no_limit() {
    let files = |limit| {
        [
            ("proc/self/cgroup", "4:memory:/\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "700\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", limit),
        ]
    };
    let (with, without) = (Root::new("v1", &files("1000\n")), Root::new("none", &files("9223372036854771712\n")));
    let limit = Limit { bytes: 1000, usage_bytes: 700, kind: "cgroup v1".into() };
    assert_eq!((Limit::read(&with.0), Limit::read(&without.0)), (Some(limit), None));
}
