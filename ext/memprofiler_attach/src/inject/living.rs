//! Whether there is a VM: while its process ends, there is none any more, though the functions for it still are.

use crate::ruby::Ruby;
use crate::vm::variables;
use ruby_layout::memory::{Memory, ProcessMemory};
use ruby_layout::reader::{Reader, parse_version};

/// The VM of a process.
#[derive(Debug)]
pub struct LivingVm(Option<Check>);

#[derive(Debug)]
struct Check {
    reader: Reader<ProcessMemory>,
    /// What refers to it, until `ruby_vm_destruct`.
    variable: usize,
}

impl LivingVm {
    /// That of `ruby` in process `pid`; None if there is none. Where its layout is unknown, one is taken for granted.
    pub fn find(pid: i32, ruby: &Ruby) -> Option<Self> {
        let reader = parse_version(&ruby.version).and_then(|version| Reader::new(ProcessMemory::new(pid), version));
        let Some(reader) = reader else { return Some(Self(None)) };
        let named = ruby.image.symbol(&reader.memory, "ruby_current_vm_ptr").map(|symbol| symbol.address);
        let variable = match named {
            Some(variable) => variable,
            None => {
                let mut all = variables(&reader.memory, &ruby.image).into_iter();
                all.find(|&(_, word)| reader.is_vm(word).unwrap_or(false))?.0
            }
        };
        let living = Self(Some(Check { reader, variable }));
        living.is_there().then_some(living)
    }

    /// Whether it is there now. Only the main thread takes it away, so it remains while that one stands still.
    pub fn is_there(&self) -> bool {
        let Some(Check { reader, variable }) = &self.0 else { return true };
        reader.memory.word(*variable).and_then(|vm| reader.is_vm(vm)).unwrap_or(false)
    }
}
