//! Finds the names of stacks and classes, which takes Ruby's own functions.

use super::Collector;
use super::classes::Class;
use super::mute::Mute;
use super::sites::Unnamed;
use super::stacks::FrameKind;
use crate::faults;
use crate::vm::names::{self, FunctionName, Place};
use crate::vm::position::Position;
use crate::vm::{class_names, protect, threads};
use magnus::rb_sys::FromRawValue;
use magnus::{Error, Value};
use memprofiler_core::reservoir::ClassId;
use memprofiler_core::stack_tree::Node;
use std::sync::Arc;

/// How many frames are named at a time: some of them take several calls into the VM.
const FRAMES_AT_A_TIME: usize = 64;

impl Collector {
    /// Names some of it, outermost frames first; call it until the name is known. With a flush's mute it may run Ruby
    /// code.
    pub(super) fn name(&self, mute: &Mute, unnamed: Unnamed) -> Result<(), Error> {
        match unnamed {
            Unnamed::Class(class, key) => self.name_class(class, key),
            Unnamed::Frames(chain) => {
                for (raw, node) in chain.into_iter().rev().take(FRAMES_AT_A_TIME) {
                    if self.failure().is_some() {
                        // Nothing is kept alive any more. The flush ends at its next rest.
                        break;
                    }
                    let name = self.name_function(mute, node)?;
                    let line = self.line(node)?;
                    self.state.with(|state| state.sites.add_named_stack(raw, node, name, line));
                }
                Ok(())
            }
        }
    }

    fn name_class(&self, class: ClassId, key: Class) -> Result<(), Error> {
        let name = match key {
            // SAFETY: the class table marks the class, to which the resolver holds a reference.
            Class::Object(value) => match unsafe { class_names::visible_class(value) } {
                // SAFETY: this is that class itself, or the one behind a singleton class, which keeps its superclasses
                // alive.
                Some(visible) => Some(unsafe { class_names::class_name(visible) }?),
                None => Some("(hidden)".into()),
            },
            Class::Internal(kind) => Some(kind.label().into()),
            Class::Named(_) | Class::Unknown => None,
        };
        self.state.with(|state| state.sites.add_named_class(class, name));
        Ok(())
    }

    fn name_function(&self, mute: &Mute, node: Node) -> Result<(Arc<FunctionName>, Place), Error> {
        let (known, pretty) =
            self.state.with(|state| (state.sites.function_name(node), state.options.pretty_backtraces));
        let (name, place) = match known {
            Ok(name) => return Ok(name),
            // SAFETY: the resolver refers to a stack with this function, so its objects are marked.
            Err(Some(FrameKind::Walked { iseq, entry })) => unsafe { names::function(iseq, entry, pretty) }?,
            // SAFETY: likewise, the object that `rb_profile_frames` returned is marked.
            Err(Some(FrameKind::Profiled(frame))) => unsafe { names::profiled_frame(frame, pretty) }?,
            Err(Some(FrameKind::Thread(thread))) => {
                // SAFETY: the resolver refers to a stack on top of this Thread, which is therefore marked.
                let thread = unsafe { Value::from_raw(thread) };
                let name = mute.lift(|| threads::name(thread))?;
                (FunctionName::pseudo(name.as_deref().unwrap_or_default()), Place::Own)
            }
            // These already stand for names.
            Err(_) => (FunctionName::pseudo("(unknown)"), Place::Own),
        };
        let named = (Arc::new(name), place);
        self.state.with(|state| state.sites.add_function_name(node, named.clone()));
        Ok(named)
    }

    /// The line of a frame. Finding it may allocate memory, for which the VM may collect garbage, so the state is not
    /// borrowed meanwhile.
    fn line(&self, node: Node) -> Result<u32, Error> {
        match self.state.with(|state| state.sites.stacks.frame_kind(node)) {
            FrameKind::Walked { iseq, .. } if iseq != 0 => protect(|| {
                faults::point("line");
                // SAFETY: the tree keeps the instruction sequence alive; `ControlFrame::running` checked the position.
                unsafe { Position::from_raw(node.position).line(iseq) }
            }),
            _ => Ok(node.position),
        }
    }
}
