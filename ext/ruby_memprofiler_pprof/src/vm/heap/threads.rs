//! Threads and fibers, living and ended.

use super::classes::ByAddress;
use super::locals::frames;
use super::prepared::Prepared;
use super::text::{self, SourceLine, bounded};
use super::types::{DataType, data};
use crate::vm::frames::LAYOUT;
use crate::vm::layout::EC_VM_STACK_SIZE;
use crate::vm::object::read;
use crate::vm::threads;
use magnus::rb_sys::AsRawValue;
use magnus::value::ReprValue;
use magnus::{Error, RArray, Ruby, Value};
use memprofiler_core::analysis::gem;
use rb_sys::VALUE;

/// The greatest length of a thread's name, in characters.
const NAME: usize = 60;

/// What is known of threads.
#[derive(Debug)]
pub struct Threads {
    /// Those that had not ended, with their names.
    living: ByAddress<Option<String>>,
    /// Where in the VM's `rb_thread_t` the name is, if that is where these have theirs.
    name_offset: Option<usize>,
}

impl Threads {
    /// Asks Ruby. May run Ruby code.
    pub fn new(ruby: &Ruby) -> Result<Self, Error> {
        let list: RArray = ruby.class_thread().funcall("list", ())?;
        let mut threads = Self { living: ByAddress::default(), name_offset: threads::name_offset(ruby)? };
        for index in 0..list.len() {
            let thread: Value = list.entry(index as isize)?;
            let (name, told) = (threads::own_name(thread)?.as_raw(), threads::name(thread)?);
            // SAFETY: the GVL is held, and the Thread is alive.
            threads.name_offset.take_if(|offset| unsafe { read(data(thread.as_raw()), *offset) } as VALUE != name);
            threads.living.insert(thread.as_raw(), told.map(|name| bounded(&name, NAME)));
        }
        Ok(threads)
    }
}

impl Prepared {
    /// The execution context of a Thread or Fiber; None for other objects.
    ///
    /// # Safety
    /// The GVL must be held, and `object` be alive.
    pub(super) unsafe fn context(&self, object: VALUE) -> Option<*const u8> {
        let (layout, types) = (LAYOUT?, self.types());
        // SAFETY: it is alive. A Thread has the address of its context at the layout's offset, and a Fiber begins at a
        // certain distance before it.
        unsafe {
            let data_type = DataType::of(object)?;
            let context = if Some(data_type) == types.thread {
                read(data(object), layout.thread_ec) as *const u8
            } else if Some(data_type) == types.fiber {
                let (fiber, distance) = (data(object), self.checked.context?);
                if fiber.is_null() { fiber } else { fiber.add(distance) }
            } else {
                return None;
            };
            (!context.is_null()).then_some(context)
        }
    }

    /// Whether a Thread or Fiber has ended, or is a Fiber that has not begun. A Thread that waits for its beginning has
    /// no stack yet either, but is listed.
    ///
    /// # Safety
    /// As for [`context`](Self::context).
    pub(super) unsafe fn has_ended(&self, object: VALUE) -> bool {
        // SAFETY: an execution context has this word.
        let has_stack = |context| unsafe { read(context, EC_VM_STACK_SIZE) } != 0;
        // SAFETY: as required of the caller.
        let context = unsafe { self.context(object) };
        context.is_some_and(|context| !has_stack(context)) && !self.threads.living.contains_key(&object)
    }

    /// Whether an execution context is that of a thread that this gem runs.
    ///
    /// # Safety
    /// The GVL must be held; `context` must be an execution context in which nothing runs, or the calling one.
    pub(super) unsafe fn is_own(&self, context: *const u8) -> bool {
        if !self.checked.frames {
            return false;
        }
        // SAFETY: as required of the caller, and frames are where the layout says; the code of a frame is alive.
        let place = unsafe { frames(context).next().and_then(|frame| SourceLine::of(frame.iseq)) };
        place.is_some_and(|place| gem::of(&place.file) == "ruby_memprofiler_pprof")
    }

    /// The name of a Thread, which may have ended.
    ///
    /// # Safety
    /// The GVL must be held, and `thread` be a live Thread.
    pub(super) unsafe fn thread_name(&self, thread: VALUE) -> Option<String> {
        self.threads.living.get(&thread).cloned().unwrap_or_else(|| {
            // SAFETY: a Thread has its name, which it keeps alive, or nil at this offset.
            let name = unsafe { text::string(read(data(thread), self.threads.name_offset?) as VALUE) };
            name.map(|name| bounded(&name, NAME))
        })
    }
}
