//! What the VM's own T_DATA refer to: threads and fibers, blocks, methods.

use super::super::iseq::imemo_type;
use super::super::layout;
use super::super::object::{Type, type_of};
use super::describer::Describer;
use super::edges::{Labels, label_variables};
use super::locals::{Block, Frame, frames};
use super::references::each_child;
use super::tables::fiber_locals;
use super::text::{self, SourceLine};
use super::types::DataType;
use memprofiler_core::graph::Edge;
use rb_sys::VALUE;

impl Describer<'_> {
    /// Labels what a T_DATA refers to. What only a machine stack or C code knows is inside it.
    ///
    /// # Safety
    /// By the contract of [`Describer::new`], if `object` was reached; it must be a T_DATA.
    pub(super) unsafe fn label_data(&self, object: VALUE, labels: &mut Labels) {
        let types = self.prepared.types();
        // SAFETY: the object is alive, and each function gets the type that it takes.
        unsafe {
            let data_type = DataType::of(object);
            if let Some(context) = self.prepared.context(object) {
                self.label_context(context, labels);
            } else if data_type.is_some() && (data_type == types.block || data_type == types.binding) {
                labels.add(Block::of(object).receiver, || Edge::Receiver);
            } else if data_type.is_some() && data_type == types.method {
                labels.add(receiver_of_method(object), || Edge::Receiver);
            }
            label_variables(object, labels);
            if data_type.is_some() && data_type == types.set {
                labels.add_rest(&Edge::Element);
            }
            let is_internal = |child| type_of(child) == Type::IMEMO;
            labels.add_each(|child| if is_internal(child) { Edge::Unknown } else { Edge::Inside });
        }
    }

    /// Labels what the frames and variables of an execution context refer to: if several variables do, by the outermost
    /// one, of the program's own if there is one.
    ///
    /// # Safety
    /// By the contract of [`Describer::new`]; `context` must be an execution context.
    unsafe fn label_context(&self, context: *const u8, labels: &mut Labels) {
        // SAFETY: nothing runs in the context, and it is what it was.
        unsafe {
            if self.prepared.checked.fiber_locals {
                for (serial, value) in fiber_locals(context) {
                    labels.add(value, || text::id_of_serial(serial).map_or(Edge::Inside, Edge::ThreadLocal));
                }
            }
            if !self.prepared.checked.frames {
                return;
            }
            // The VM's own methods in Ruby say less than the program's that called them, or their blocks.
            let is_internal = |frame: &Frame| SourceLine::of(frame.iseq).is_some_and(|place| place.is_internal());
            let (internal, program): (Vec<_>, Vec<_>) = frames(context).partition(is_internal);
            for frame in program.into_iter().chain(internal) {
                for (index, value) in frame.locals.values() {
                    labels.add(value, || {
                        let name = frame.locals.name(index);
                        name.map_or(Edge::Inside, |name| Edge::Local(format!("{name}{}", self.within(frame.iseq))))
                    });
                }
            }
            for frame in frames(context) {
                labels.add(frame.receiver, || Edge::Receiver);
            }
        }
    }

    /// Such as ` in fetch at app/foo.rb:7`.
    ///
    /// # Safety
    /// The GVL must be held, and `iseq` be a live instruction sequence.
    unsafe fn within(&self, iseq: VALUE) -> String {
        // SAFETY: as required of the caller.
        let place = unsafe { SourceLine::of(iseq) };
        place.map_or_else(String::new, |place| {
            format!(" in {} at {}", place.label, place.short(&self.prepared.directory))
        })
    }
}

/// The receiver of a Method, unless it is a class, of which a Method has others too; or 0. An UnboundMethod has none.
///
/// # Safety
/// The GVL must be held, and `method` be a live Method or UnboundMethod.
unsafe fn receiver_of_method(method: VALUE) -> VALUE {
    let mut receiver = 0;
    // SAFETY: the Method is alive, and what it refers to.
    unsafe {
        each_child(method, |child| {
            if !matches!(type_of(child), Type::CLASS | Type::MODULE | Type::ICLASS | Type::IMEMO) && receiver == 0 {
                receiver = child;
            }
        });
    }
    receiver
}

/// The method entry of a Method or UnboundMethod, or 0.
///
/// # Safety
/// As for [`receiver_of_method`].
pub(super) unsafe fn entry_of_method(method: VALUE) -> VALUE {
    let mut entry = 0;
    // SAFETY: the Method is alive, and what it refers to.
    unsafe {
        each_child(method, |child| {
            if imemo_type(child) == Some(layout::IMEMO_MENT) {
                entry = child;
            }
        });
    }
    entry
}
