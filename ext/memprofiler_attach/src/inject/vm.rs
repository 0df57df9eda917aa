//! The functions of a Ruby that are needed, all of them exported.

use crate::elf::Image;
use crate::failure::Failure;
use ruby_layout::memory::Memory;

/// The oldest Ruby that the profiler runs on.
const OLDEST: (u32, u32) = (3, 1);

/// How a postponed job is asked for: a function that the VM calls where it would handle a signal.
#[derive(Debug, Clone, Copy)]
pub enum Jobs {
    /// 3.1 and 3.2: `rb_postponed_job_register_one(flags, function, data)`.
    Once {
        /// Its address.
        register: usize,
    },
    /// From 3.3 on: `rb_postponed_job_preregister(flags, function, data)`, and `rb_postponed_job_trigger(handle)`.
    /// There are 32 handles, and none is ever given back; the same function has always the same.
    Table {
        /// The address of the first.
        preregister: usize,
        /// The address of the second.
        trigger: usize,
    },
}

/// Where they are.
#[derive(Debug)]
pub struct Vm {
    /// `rb_require(name)`.
    pub require: usize,
    /// `rb_thread_create(function, data)`.
    pub thread_create: usize,
    /// `rb_protect(function, argument, state)`.
    pub protect: usize,
    /// How jobs are asked for.
    pub jobs: Jobs,
    /// Not 0 once Ruby has read its command line, and so can run code.
    pub booted: usize,
    code: Vec<(usize, usize)>,
}

impl Vm {
    /// The functions in the image of a Ruby of this version.
    pub fn find<M: Memory>(memory: &M, image: &Image, version: &str) -> Result<Self, Failure> {
        let mut numbers = version.split('.').map_while(|part| part.parse::<u32>().ok());
        if (numbers.next(), numbers.next()) < (Some(OLDEST.0), Some(OLDEST.1)) {
            return Err(Failure::new(format!("this is Ruby {version}, and the profiler needs 3.1 or newer")));
        }
        let missing = |name: &str| Failure::new(format!("{} (Ruby {version}) does not export {name}", image.path));
        let address = |name: &str| image.symbol(memory, name).map(|symbol| symbol.address);
        let needed = |name: &str| address(name).ok_or_else(|| missing(name));
        let jobs = match (address("rb_postponed_job_preregister"), address("rb_postponed_job_trigger")) {
            (Some(preregister), Some(trigger)) => Jobs::Table { preregister, trigger },
            _ => Jobs::Once { register: needed("rb_postponed_job_register_one")? },
        };
        Ok(Self {
            require: needed("rb_require")?,
            thread_create: needed("rb_thread_create")?,
            protect: needed("rb_protect")?,
            jobs,
            booted: needed("rb_argv0")?,
            code: image.segments.iter().filter(|part| part.executable).map(|part| (part.start, part.end)).collect(),
        })
    }

    /// Whether an address is in its code.
    pub fn contains(&self, address: usize) -> bool {
        self.code.iter().any(|&(start, end)| (start..end).contains(&address))
    }
}
