//! The VM and its threads.

use crate::layout;
use crate::memory::Memory;
use crate::object::{Type, type_of};
use crate::reader::Reader;
use crate::value;

/// More threads, or Ractors, than there are.
const MOST: usize = 1 << 16;

/// A thread that Ruby knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its number in Linux; 0 if no native thread runs it.
    pub tid: u32,
    /// Its execution context.
    pub context: usize,
    /// What the program has called it.
    pub name: Option<String>,
    /// Whether it has the GVL of its Ractor.
    pub has_gvl: bool,
    /// Whether it waits for that.
    pub wants_gvl: bool,
    /// Whether it is the first thread.
    pub is_main: bool,
    /// Whether it belongs to the first Ractor.
    pub in_main_ractor: bool,
}

impl<M: Memory> Reader<M> {
    /// Whether there is a VM at this address: its first thread refers to it, to an execution context that refers to the
    /// thread, and to an object that wraps the thread.
    pub fn is_vm(&self, vm: usize) -> Result<bool, M::Error> {
        let word = |at: usize, offset: usize| self.memory.word(at.wrapping_add(offset));
        let thread = word(vm, layout::VM_MAIN_THREAD)?;
        if thread == 0 || thread % 8 != 0 || word(thread, layout::THREAD_VM)? != vm {
            return Ok(false);
        }
        let object = word(thread, layout::THREAD_SELF)?;
        Ok(word(thread, layout::THREAD_RACTOR)? == word(vm, layout::VM_MAIN_RACTOR)?
            && type_of(&self.memory, object)? == Some(Type::DATA)
            && word(object, layout::RTYPEDDATA_DATA)? == thread
            && word(word(thread, self.layout.thread_ec)?, layout::EC_THREAD)? == thread)
    }

    /// The threads of a VM, Ractor by Ractor, in the order in which they began.
    pub fn threads(&self, vm: usize) -> Result<Vec<Thread>, M::Error> {
        let mut threads = Vec::new();
        for ractor in self.list(vm.wrapping_add(layout::VM_RACTORS), self.release.ractor_node)? {
            let running = self.memory.word(ractor.wrapping_add(self.layout.ractor_running))?;
            let ready = self.list(ractor.wrapping_add(self.release.ractor_ready), self.layout.thread_ready)?;
            for thread in self.list(ractor.wrapping_add(self.layout.ractor_threads), layout::THREAD_NODE)? {
                threads.push(Thread {
                    has_gvl: thread == running,
                    wants_gvl: ready.contains(&thread),
                    in_main_ractor: self.memory.word(vm.wrapping_add(layout::VM_MAIN_RACTOR))? == ractor,
                    ..self.thread(vm, thread)?
                });
            }
        }
        Ok(threads)
    }

    fn thread(&self, vm: usize, thread: usize) -> Result<Thread, M::Error> {
        let word = |at: usize, offset: usize| self.memory.word(at.wrapping_add(offset));
        if word(thread, layout::THREAD_VM)? != vm {
            self.memory.reject()?;
        }
        let native = match self.layout.thread_native {
            0 => thread,
            offset => word(thread, offset)?,
        };
        let tid = match native {
            0 => 0,
            native => self.memory.half(native.wrapping_add(self.layout.native_tid))?,
        };
        let name = word(thread, self.release.thread_name)?;
        Ok(Thread {
            tid,
            context: word(thread, self.layout.thread_ec)?,
            name: value::string(&self.memory, self.layout, name)?,
            has_gvl: false,
            wants_gvl: false,
            is_main: word(vm, layout::VM_MAIN_THREAD)? == thread,
            in_main_ractor: true,
        })
    }

    /// What is in a circular list, whose links are `node` bytes behind the beginnings of what they link.
    fn list(&self, head: usize, node: usize) -> Result<Vec<usize>, M::Error> {
        let mut found = Vec::new();
        let mut link = self.memory.word(head)?;
        while link != head {
            if found.len() >= MOST {
                self.memory.reject()?;
                break;
            }
            found.push(link.wrapping_sub(node));
            link = self.memory.word(link)?;
        }
        Ok(found)
    }
}
