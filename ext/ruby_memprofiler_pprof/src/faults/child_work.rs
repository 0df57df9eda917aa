//! What specs let a copy of the process do.

use std::collections::HashMap;
use std::fs;
use std::hint::black_box;
use std::io::{self, Write};
use std::time::Duration;

/// Memory that the process had before it was copied: blocks of all sizes, each full of its number.
pub struct Belongings(Vec<Vec<u8>>);

impl Belongings {
    /// Some 10 MB.
    pub fn new() -> Self {
        Self((0..=255).map(|number| vec![number; 1 << (number % 20)]).collect())
    }
}

/// Does the work of this name.
pub fn perform(name: &str, argument: &str, own: &mut Belongings, pipe: &mut dyn Write) -> io::Result<()> {
    let number = || argument.parse::<u64>().map_err(io::Error::other);
    match name {
        "bytes" => (0..number()?).try_for_each(|index| pipe.write_all(&[(index % 251) as u8])),
        "memory" => {
            let numbers: Vec<u64> = (0..number()? << 17).collect();
            write!(pipe, "{}", numbers.iter().sum::<u64>())
        }
        "allocations" => write!(pipe, "{}", Churn::new(number()?, own).go_on()),
        "state" => state(pipe),
        "wait" => wait(argument, pipe),
        "busy" => loop {
            black_box(name);
        },
        "error" => Err(io::Error::other(argument)),
        // SAFETY: it does not return.
        "abort" => unsafe { libc::abort() },
        "crash" => {
            // SAFETY: it is not: it crashes.
            unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(0) };
            Ok(())
        }
        "half" => {
            pipe.write_all(&vec![0; 1 << 17])?;
            // SAFETY: as above.
            unsafe { libc::_exit(0) }
        }
        _ => Err(io::Error::other("no such work")),
    }
}

/// Creates the file FOLDER/started, waits for FOLDER/go, and answers with a megabyte, which no pipe holds.
fn wait(folder: &str, pipe: &mut dyn Write) -> io::Result<()> {
    fs::write(format!("{folder}/started"), std::process::id().to_string())?;
    while fs::metadata(format!("{folder}/go")).is_err() {
        std::thread::sleep(Duration::from_millis(1));
    }
    pipe.write_all(&vec![b'.'; 1 << 20])
}

/// What the system says about the copy.
fn state(pipe: &mut dyn Write) -> io::Result<()> {
    let open = (0..1024).filter(|&descriptor| {
        // SAFETY: only asks.
        unsafe { libc::fcntl(descriptor, libc::F_GETFD) != -1 }
    });
    writeln!(pipe, "open: {}", open.map(|descriptor| descriptor.to_string()).collect::<Vec<_>>().join(" "))?;
    for standard in 0..3 {
        writeln!(pipe, "{standard}: {}", fs::read_link(format!("/proc/self/fd/{standard}"))?.display())?;
    }
    let mut signal = 0;
    // SAFETY: these only ask; the second one fills a number.
    let (dumpable, nice) = unsafe {
        libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut signal);
        (libc::prctl(libc::PR_GET_DUMPABLE), libc::getpriority(libc::PRIO_PROCESS, 0))
    };
    writeln!(pipe, "dumpable: {dumpable}\nnice: {nice}\npdeathsig: {signal}")?;
    writeln!(pipe, "oom_score_adj: {}", fs::read_to_string("/proc/self/oom_score_adj")?.trim())?;
    for file in ["status", "limits"] {
        pipe.write_all(&fs::read(format!("/proc/self/{file}"))?)?;
    }
    Ok(())
}

/// Blocks that grow, shrink, come and go at random, and whose contents are known.
struct Churn<'a> {
    state: u64,
    own: &'a mut Belongings,
    seen: HashMap<usize, u64>,
}

const STEPS: usize = 4000;

#[repr(align(4096))]
struct Aligned([u8; 100]);

impl<'a> Churn<'a> {
    fn new(seed: u64, own: &'a mut Belongings) -> Self {
        Self { state: seed | 1, own, seen: HashMap::new() }
    }

    fn random(&mut self, below: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % below
    }

    /// Up to 4 MB, and as often less than 2 KB.
    fn size(&mut self) -> usize {
        let magnitude = self.random(23);
        self.random(1 << magnitude)
    }

    /// "whole", or what has become of a block's contents.
    fn go_on(mut self) -> String {
        for step in 0..STEPS {
            let index = self.random(256);
            let size = self.size();
            let mut block = std::mem::take(&mut self.own.0[index]);
            if block.iter().any(|&byte| byte != index as u8) {
                return format!("step {step}: block {index} has changed");
            }
            match self.random(4) {
                0 => block = Vec::new(),
                1 => block.resize(size, index as u8),
                2 => {
                    block.truncate(size);
                    block.shrink_to_fit();
                }
                _ => {
                    let zeros = vec![0; size];
                    if zeros.iter().any(|&byte| byte != 0) {
                        return format!("step {step}: {size} bytes are not zero");
                    }
                    block = zeros;
                    block.fill(index as u8);
                }
            }
            let aligned = Box::new(Aligned([index as u8; 100]));
            if (&raw const *aligned).addr() % 4096 != 0 || aligned.0[99] != index as u8 {
                return format!("step {step}: a block is not aligned");
            }
            self.own.0[index] = block;
            *self.seen.entry(size).or_default() += 1;
        }
        if self.seen.values().sum::<u64>() == STEPS as u64 {
            "whole".to_owned()
        } else {
            "a table has changed".to_owned()
        }
    }
}
