//! Local variables, of frames and of environments that blocks have captured.

use super::super::frames::{ControlFrames, LAYOUT};
use super::super::iseq::imemo_type;
use super::super::layout;
use super::super::object::{is_heap, read};
use super::text;
use super::types::data;
use rb_sys::{ID, VALUE};

/// The local variables of an instruction sequence at an environment.
#[derive(Debug, Clone, Copy)]
pub struct Locals {
    ep: *const VALUE,
    names: *const ID,
    count: usize,
}

impl Locals {
    /// # Safety
    /// `iseq` must be 0 or a live instruction sequence, and `ep` the environment of a frame that runs it, on a VM stack
    /// or on the heap.
    unsafe fn new(iseq: VALUE, ep: *const VALUE) -> Self {
        let none = Self { ep, names: std::ptr::null(), count: 0 };
        let Some(layout) = LAYOUT else { return none };
        // SAFETY: an instruction sequence has a body, which has these two at the layout's offsets.
        unsafe {
            if ep.is_null() || imemo_type(iseq) != Some(layout::IMEMO_ISEQ) {
                return none;
            }
            let body = read(iseq as *const u8, layout::ISEQ_BODY) as *const u8;
            let names = read(body, layout.iseq_body_local_table) as *const ID;
            let count = body.add(layout.iseq_body_local_table_size).cast::<u32>().read() as usize;
            if names.is_null() { none } else { Self { ep, names, count } }
        }
    }

    /// Of an environment on the heap, an imemo; and the instruction sequence it belongs to, or 0.
    ///
    /// # Safety
    /// `environment` must be a live imemo of that type.
    pub unsafe fn of_environment(environment: VALUE) -> (Self, VALUE) {
        // SAFETY: it has these two words at the layout's offsets. `ep` is null while it is being created.
        unsafe {
            let iseq = read(environment as *const u8, layout::ENV_ISEQ) as VALUE;
            (Self::new(iseq, read(environment as *const u8, layout::ENV_EP) as *const VALUE), iseq)
        }
    }

    /// The variables that refer to the heap: the number of each, and its value.
    ///
    /// # Safety
    /// The GVL must be held, and the frame or environment still be there.
    pub unsafe fn values(self) -> impl Iterator<Item = (usize, VALUE)> {
        (0..self.count).filter_map(move |index| {
            // SAFETY: the variables are below the words that each environment has, the last one on top.
            let value = unsafe { *self.ep.sub(layout::VM_ENV_DATA_SIZE + self.count - 1 - index) };
            is_heap(value).then_some((index, value))
        })
    }

    /// The name of variable number `index`, which `values` returned; None for one of the VM's own.
    ///
    /// # Safety
    /// As for [`values`](Self::values).
    pub unsafe fn name(self, index: usize) -> Option<String> {
        // SAFETY: the table has an ID for each variable.
        unsafe { text::id(*self.names.add(index)) }.filter(|name| !name.is_empty())
    }
}

/// A frame of Ruby code.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// What runs in it.
    pub iseq: VALUE,
    /// The receiver.
    pub receiver: VALUE,
    /// Its variables, which are on the heap if a block has captured them.
    pub locals: Locals,
}

/// The frames of Ruby code of an execution context that does not run, or calls this function; the outermost one first.
///
/// # Safety
/// The GVL must be held as long as they are used; `context` must be an execution context.
pub unsafe fn frames(context: *const u8) -> impl Iterator<Item = Frame> {
    // SAFETY: nothing runs in the context meanwhile. The layout is known, or there are no frames.
    let frames = LAYOUT.map(|_| unsafe { ControlFrames::of(context) });
    (0..frames.map_or(0, |frames| frames.len())).filter_map(move |index| {
        let frames = frames?;
        // SAFETY: there is a frame with this number, whose environment has its flags. Only one in which C code runs may
        // have something else in the place of an instruction sequence.
        unsafe {
            let frame = frames.get(index);
            if frame.is_native() || imemo_type(frame.iseq()) != Some(layout::IMEMO_ISEQ) {
                return None;
            }
            let locals = Locals::new(frame.iseq(), frame.ep());
            Some(Frame { iseq: frame.iseq(), receiver: frames.receiver(index), locals })
        }
    })
}

/// The block of a Proc or Binding.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// Its code, or 0 if it is not in Ruby.
    pub iseq: VALUE,
    /// `self` in it, or 0.
    pub receiver: VALUE,
}

impl Block {
    /// # Safety
    /// `object` must be a live Proc or Binding.
    pub unsafe fn of(object: VALUE) -> Self {
        // SAFETY: it wraps a struct that begins with a block, with its type at the layout's offset; one of this type
        // has these two words at the layout's offsets.
        unsafe {
            let block = data(object);
            let kind = block.add(layout::PROC_BLOCK_TYPE).cast::<u32>().read() as usize;
            if kind != layout::BLOCK_TYPE_ISEQ {
                return Self { iseq: 0, receiver: 0 };
            }
            let iseq = read(block, layout::PROC_BLOCK_CODE) as VALUE;
            let iseq = if imemo_type(iseq) == Some(layout::IMEMO_ISEQ) { iseq } else { 0 };
            Self { iseq, receiver: read(block, layout::PROC_BLOCK_SELF) as VALUE }
        }
    }
}
