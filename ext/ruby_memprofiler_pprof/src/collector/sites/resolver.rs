//! What has been named so far.

use crate::collector::classes::Class;
use crate::collector::stacks::FrameKind;
use crate::vm::names::{FunctionName, ShownAt};
use memprofiler_core::reservoir::ClassId;
use memprofiler_core::sparse_array::SparseArray;
use memprofiler_core::stack_tree::{FunctionId, Node, StackId};
use std::sync::Arc;

/// What one flush has named so far, or what was named ahead of it. Holds references, so that all ids keep their meaning
/// until they are released.
#[derive(Debug, Default)]
pub(super) struct Resolver {
    pub(super) names: Names,
    /// Whether there is no flush. Threads, and stacks that are still to be read, are then left to the next one: asking
    /// for a Thread's name calls a method, at whose end the VM raises pending exceptions.
    pub(super) between_flushes: bool,
    /// The number of the last deferred stack that had been read when this began, or never will be.
    pub(super) deferred: u32,
    /// The requested stacks. They also keep alive the stacks that they extend.
    pub(super) raw_stacks: Vec<StackId>,
    /// Their named counterparts, as far as they are known.
    pub(super) named_stacks: Vec<StackId>,
    pub(super) raw_classes: Vec<ClassId>,
    pub(super) named_classes: Vec<ClassId>,
    /// The stack and class requested last.
    pub(super) latest_stack: Option<(StackId, StackId)>,
    pub(super) latest_class: Option<(ClassId, ClassId)>,
}

/// What was found. Large, so it takes a while to drop.
#[derive(Debug, Default)]
pub struct Names {
    /// The named stack for each stack seen, and for all that it extends.
    pub(super) stacks: SparseArray<StackId>,
    pub(super) classes: SparseArray<ClassId>,
    pub(super) functions: SparseArray<(Arc<FunctionName>, ShownAt)>,
}

/// What needs a name; the resolver holds a reference to it.
#[derive(Debug)]
pub enum Unnamed {
    /// Frames, outermost last.
    Frames(Vec<(StackId, Node)>),
    Class(ClassId, Class),
}

impl Names {
    pub(super) fn stack(&self, stack: StackId) -> Option<StackId> {
        self.stacks.get(stack.index()?).copied()
    }

    /// Forgets what may soon be another stack or function.
    pub(super) fn forget(&mut self, stack: StackId, function: Option<FunctionId>) {
        if let Some(index) = stack.index() {
            self.stacks.remove(index);
        }
        if let Some(function) = function {
            self.functions.remove(function.0 as usize);
        }
    }
}

impl Resolver {
    /// The stack of names for `stack`, if known.
    #[inline]
    pub(super) fn stack(&mut self, stack: StackId) -> Option<StackId> {
        if let Some((latest, named)) = self.latest_stack {
            if latest == stack {
                return Some(named);
            }
        }
        let named = if stack == StackId::EMPTY { stack } else { self.names.stack(stack)? };
        self.latest_stack = Some((stack, named));
        Some(named)
    }

    /// The named class for `class`, if known.
    #[inline]
    pub(super) fn class(&mut self, class: ClassId) -> Option<ClassId> {
        if let Some((latest, named)) = self.latest_class {
            if latest == class {
                return Some(named);
            }
        }
        let named = *self.names.classes.get(class.0 as usize)?;
        self.latest_class = Some((class, named));
        Some(named)
    }

    /// Whether frames of this kind stay as they are.
    pub(super) fn leaves(&self, kind: FrameKind) -> bool {
        match kind {
            FrameKind::Walked { .. } | FrameKind::Profiled(_) => false,
            FrameKind::Named(_) | FrameKind::Labels(_) | FrameKind::Span(_) => true,
            FrameKind::Thread(_) => self.between_flushes,
            FrameKind::Deferred(number) => self.between_flushes && number.wrapping_sub(self.deferred) as i32 > 0,
        }
    }
}
