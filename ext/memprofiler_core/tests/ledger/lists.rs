//! What Linux's lists say.

use memprofiler_core::ledger::{Kind, Mapping, Process, Usage, stack_pointer};

const SMAPS: &str = "\
55dc96f91000-55dc96f93000 r-xp 00000000 fe:00 247282                     /usr/bin/a b
Size:                  8 kB
Rss:                   8 kB
Pss:                   4 kB
Shared_Clean:          4 kB
Shared_Dirty:          0 kB
Private_Clean:         0 kB
Private_Dirty:         4 kB
Anonymous:             4 kB
Swap:                 12 kB
SwapPss:              12 kB
THPeligible:           0
VmFlags: rd ex mr mw me
7ffec9380000-7ffec93a1000 rw-p 00000000 00:00 0                          [stack]
Rss:                  12 kB
Private_Dirty:        12 kB
Anonymous:            12 kB
";

#[test]
fn a_mapping_has_a_range_permissions_and_usage() {
    let [file, stack] = Mapping::parse(SMAPS)[..] else { panic!("two mappings") };
    assert_eq!((file.start, file.end, file.size()), (0x55dc_96f9_1000, 0x55dc_96f9_3000, 8192));
    assert_eq!((file.readable, file.writable, file.executable, file.kind), (true, false, true, Kind::File));
    let usage = Usage { resident: 8192, anonymous: 4096, shared: 4096, private: 4096, swap: 12_288 };
    assert_eq!(file.usage, Some(usage));
    assert_eq!((stack.kind, stack.writable), (Kind::Stack, true));
    assert_eq!(stack.usage.map(|usage| (usage.resident, usage.shared)), Some((12_288, 0)));
}

#[test]
fn the_short_list_has_no_usage() {
    let maps: String =
        SMAPS.lines().filter(|line| line.contains("00:00") || line.contains("fe:")).collect::<Vec<_>>().join("\n");
    let mappings = Mapping::parse(&maps);
    assert_eq!(mappings.len(), 2);
    assert!(mappings.iter().all(|mapping| mapping.usage.is_none()));
}

#[test]
fn names_tell_what_is_mapped() {
    let kind = |name: &str| Mapping::parse(&format!("1000-2000 rw-p 00000000 00:00 0    {name}\n"))[0].kind;
    let names = ["", "[anon: malloc]", "[heap]", "[stack]", "[vdso]", "/lib/libc.so.6", "/dev/zero (deleted)"];
    use Kind::{Anonymous, File, Heap, Stack, System};
    assert_eq!(names.map(kind), [Anonymous, Anonymous, Heap, Stack, System, File, File]);
    assert_eq!(Mapping::parse("1000-2000 rw-p 00000000 00:00 0\n")[0].kind, Anonymous);
}

#[test]
fn what_makes_no_sense_is_left_out() {
    assert_eq!(Mapping::parse("Rss: 4 kB\n\nx\n1000-zz rw-p 0 0 0\n1000 rw-p\n1-2 r\n"), []);
}

#[test]
fn a_process_has_totals() {
    let status = "Name:\tVmRSS: 1 kB\nVmHWM:\t    20 kB\nVmRSS:\t   10 kB\nRssAnon:\t 5 kB\nRssFile:\t 3 kB\nRssShmem:\t 2 kB\nVmSwap:\t 1 kB\n";
    let process = Process::parse(status);
    assert_eq!((process.resident, process.peak), (Some(10 << 10), Some(20 << 10)));
    assert_eq!((process.files, process.anonymous, process.swap), (Some(5 << 10), Some(5 << 10), Some(1 << 10)));
    assert_eq!(Process::parse(""), Process::default());
}

#[test]
fn a_thread_that_waits_has_a_stack_pointer() {
    let waiting = "202 0x7ffe 0x80 0x0 0x0 0x0 0x0 0x7f57805da010 0x7f57804e5010\n";
    assert_eq!(stack_pointer(waiting), Some(0x7f57_805d_a010));
    assert_eq!(stack_pointer("-1 0x7f57805da010 0x7f57804e5010\n"), Some(0x7f57_805d_a010));
    assert_eq!(["running\n", "", "1 2 3"].map(stack_pointer), [None; 3]);
}
