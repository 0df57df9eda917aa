//! What the stacks' functions keep alive, and which names are still needed.

use super::{FrameKind, Stacks};
use crate::collector::pins::Holder;
use crate::vm::gc;
use crate::vm::object::is_heap;
use memprofiler_core::stack_tree::{FunctionKey, StackId, StackTree};
use rb_sys::VALUE;
use std::ops::Range;

/// How many functions a keeper keeps alive.
const KEPT_FUNCTIONS: usize = 128;

/// Announces the references of the innermost function of `stack` to the GC.
#[cold]
pub(super) fn announce(tree: &StackTree, stack: StackId, keepers: &[VALUE], holder: &mut Holder) {
    let Some(node) = tree.node(stack) else { return };
    let key = tree.function_key(node.function);
    let keeper = keepers.get(node.function.0 as usize / KEPT_FUNCTIONS).copied();
    holder.pins.add(keeper.is_some());
    let keeper = keeper.unwrap_or(holder.object);
    for value in [key.code, key.owner] {
        // SAFETY: in a hook, or at a safe point with the GVL. The holder is a root, and it marks the keepers. The value
        // is alive because a frame of a thread uses it, or has done so since the last collection began, or because it
        // is that Thread; or it is not a heap reference.
        unsafe { gc::write_barrier(keeper, value as VALUE) };
    }
}

impl Stacks {
    /// The number of the next keeper, if one should be made ahead of new functions.
    pub fn next_keeper(&self) -> Option<usize> {
        /// How many to keep in reserve.
        const SPARE: usize = 4;
        let wanted = self.tree.function_bound() / KEPT_FUNCTIONS + SPARE;
        (self.keepers.len() < wanted).then_some(self.keepers.len())
    }

    /// Adds the next keeper. The references that it has to mark must then be announced.
    pub fn add_keeper(&mut self, keeper: VALUE) {
        self.keepers.push(keeper);
    }

    /// The number of keepers.
    pub fn keeper_count(&self) -> usize {
        self.keepers.len()
    }

    /// The keepers with numbers in a range, as far as they exist.
    pub fn keepers(&self, numbers: Range<usize>) -> impl Iterator<Item = VALUE> {
        self.keepers.get(numbers).unwrap_or_default().iter().copied()
    }

    /// The ids of the functions, in use or not, that keeper number `number` keeps alive.
    pub fn kept_functions(&self, number: usize) -> Range<usize> {
        let bound = self.tree.function_bound();
        (number * KEPT_FUNCTIONS).min(bound)..((number + 1) * KEPT_FUNCTIONS).min(bound)
    }

    /// The ids of the functions that no keeper keeps alive.
    pub fn unkept_functions(&self) -> Range<usize> {
        let bound = self.tree.function_bound();
        (self.keepers.len() * KEPT_FUNCTIONS).min(bound)..bound
    }

    /// The VM's objects that the functions with ids in a range refer to.
    pub fn references_of(&self, ids: Range<usize>) -> impl Iterator<Item = VALUE> {
        let keys = self.tree.function_keys_of(ids);
        keys.flat_map(|key| [key.code as VALUE, key.owner as VALUE]).filter(|&value| is_heap(value))
    }

    /// The VM's objects that all functions refer to.
    pub fn references(&self) -> impl Iterator<Item = VALUE> {
        self.references_of(0..usize::MAX)
    }

    /// Updates functions' references that compaction has moved; `location` returns the new address.
    pub fn relocate(&mut self, location: impl Fn(u64) -> u64) {
        let moved = |key: FunctionKey| FunctionKey { code: location(key.code), owner: location(key.owner) };
        if self.tree.relocate_functions(moved) {
            // Something else may move to where a frame's method entry was.
            self.forget_contexts();
        }
    }

    /// Drops names that no stack has any more: those of `some` functions from number `first` on, and on the first call
    /// all label sets and spans. Returns the next number, or None at the end.
    pub fn prune_names(&mut self, first: usize, some: usize) -> Option<usize> {
        let Self { tree, labels, exemplars, function_names, .. } = self;
        if first == 0 {
            labels.prune(0..usize::MAX, |id| tree.has_function(FrameKind::Labels(id).key()));
            exemplars.prune(|number| tree.has_function(FrameKind::Span(number).key()));
        }
        // The placeholders' names stay, whether a stack has them or not.
        let placeholders = [self.truncated, self.lost];
        let next = first + some;
        function_names
            .prune(first..next, |id| placeholders.contains(&id) || tree.has_function(FrameKind::Named(id).key()));
        (next < function_names.id_bound()).then_some(next)
    }
}
