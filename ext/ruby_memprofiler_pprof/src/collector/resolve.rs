//! Finds the names of stacks and classes, which takes Ruby's own functions.

use super::Collector;
use super::classes::Class;
use super::mute::Mute;
use super::sites::{Sites, Unnamed};
use super::stacks::FrameKind;
use crate::faults;
use crate::vm::names::{self, FunctionName, ShownAt};
use crate::vm::position::Position;
use crate::vm::{class_names, protect, threads};
use magnus::rb_sys::FromRawValue;
use magnus::{Error, Value};
use memprofiler_core::reservoir::ClassId;
use memprofiler_core::stack_tree::Node;
use std::sync::Arc;

/// How many frames are named at a time: some of them take several calls into the VM.
const FRAMES_AT_A_TIME: usize = 64;

/// Whoever has sites, and names what is in them.
pub trait Owner: Sized {
    /// Runs `body` with the sites; it must not call into Ruby.
    fn with_sites<R>(&self, body: impl FnOnce(&mut Sites) -> R) -> R;

    /// Whether names are qualified.
    fn pretty_backtraces(&self) -> bool;

    /// Whether a panic has ended it, so that nothing is kept alive any more.
    fn has_failed(&self) -> bool;

    /// Names some of it, outermost frames first; call it until the name is known. With a flush's mute it may run Ruby
    /// code.
    fn name(&self, mute: &Mute, unnamed: Unnamed) -> Result<(), Error> {
        match unnamed {
            Unnamed::Class(class, key) => name_class(self, class, key),
            Unnamed::Frames(chain) => {
                for (raw, node) in chain.into_iter().rev().take(FRAMES_AT_A_TIME) {
                    if self.has_failed() {
                        // Nothing is kept alive any more. The flush ends at its next rest.
                        break;
                    }
                    let name = name_function(self, mute, node)?;
                    let line = line(self, node)?;
                    self.with_sites(|sites| sites.add_named_stack(raw, node, name, line));
                }
                Ok(())
            }
        }
    }
}

impl Owner for Collector {
    fn with_sites<R>(&self, body: impl FnOnce(&mut Sites) -> R) -> R {
        self.state.with(|state| body(&mut state.sites))
    }

    fn pretty_backtraces(&self) -> bool {
        self.state.with(|state| state.options.pretty_backtraces)
    }

    fn has_failed(&self) -> bool {
        self.failure().is_some()
    }
}

fn name_class(owner: &impl Owner, class: ClassId, key: Class) -> Result<(), Error> {
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
    owner.with_sites(|sites| sites.add_named_class(class, name));
    Ok(())
}

fn name_function(owner: &impl Owner, mute: &Mute, node: Node) -> Result<(Arc<FunctionName>, ShownAt), Error> {
    let pretty = owner.pretty_backtraces();
    let (name, place) = match owner.with_sites(|sites| sites.function_name(node)) {
        Ok(name) => return Ok(name),
        // SAFETY: the resolver refers to a stack with this function, so its objects are marked.
        Err(Some(FrameKind::Walked { iseq, entry })) => unsafe { names::function(iseq, entry, pretty) }?,
        // SAFETY: likewise, the object that `rb_profile_frames` returned is marked.
        Err(Some(FrameKind::Profiled(frame))) => unsafe { names::profiled_frame(frame, pretty) }?,
        Err(Some(FrameKind::Thread(thread))) => {
            // SAFETY: the resolver refers to a stack on top of this Thread, which is therefore marked.
            let thread = unsafe { Value::from_raw(thread) };
            let name = mute.lift(|| threads::name(thread))?;
            (FunctionName::pseudo(name.as_deref().unwrap_or_default()), ShownAt::Own)
        }
        // These already stand for names.
        Err(_) => (FunctionName::pseudo("(unknown)"), ShownAt::Own),
    };
    let named = (Arc::new(name), place);
    owner.with_sites(|sites| sites.add_function_name(node, named.clone()));
    Ok(named)
}

/// The line of a frame. Finding it may allocate memory, for which the VM may collect garbage, so the state is not
/// borrowed meanwhile.
fn line(owner: &impl Owner, node: Node) -> Result<u32, Error> {
    match owner.with_sites(|sites| sites.stacks.frame_kind(node)) {
        FrameKind::Walked { iseq, .. } if iseq != 0 => protect(|| {
            faults::point("line");
            // SAFETY: the tree keeps the instruction sequence alive; `ControlFrame::running` checked the position.
            unsafe { Position::from_raw(node.position).line(iseq) }
        }),
        _ => Ok(node.position),
    }
}
