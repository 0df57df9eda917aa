//! Call stacks, stored once: a tree whose nodes are (parent, function, position).
//!
//! Unlike the trees of profiles, which only grow, it drops whatever is no longer referenced.

use crate::id_index::IdIndex;
use crate::interner::Interner;
use std::ops::Range;

/// The identity of a function at run time: its code, and the entry through which it was found. Both are opaque; the
/// caller keeps them alive as long as the tree refers to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FunctionKey {
    /// The code, or 0.
    pub code: u64,
    /// The method entry or other owner through which the code was called, or 0.
    pub owner: u64,
}

/// A function in the tree. Valid while a stack refers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

/// A stack in the tree, identified by its innermost frame. Valid until its holder releases it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(u32);

impl Default for StackId {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl StackId {
    /// The empty stack. It is never released.
    pub const EMPTY: Self = Self(u32::MAX);

    /// An index for tables of stacks, below [`StackTree::id_bound`]; None for the empty stack.
    pub fn index(self) -> Option<usize> {
        (self != Self::EMPTY).then_some(self.0 as usize)
    }
}

/// One frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node {
    /// The frames that called this one.
    pub parent: StackId,
    /// The function running in this frame.
    pub function: FunctionId,
    /// Where in the function, in units that the caller chooses.
    pub position: u32,
}

/// A tree of interned stacks. Every node holds a reference to its parent and its function; what is no longer referenced
/// is dropped immediately.
#[derive(Debug, Default)]
pub struct StackTree {
    /// With each node, the child of it that was requested last: programs tend to repeat their paths.
    nodes: Interner<Node, StackId>,
    functions: Interner<FunctionKey>,
}

impl StackTree {
    /// The approximate size of a node: its slot and its entry in the index, each with spare room for growth, and the
    /// same for a function of its own.
    pub const BYTES_PER_NODE: usize = 120;
    /// The number of parts in which [`shrink`](Self::shrink) works.
    pub const PARTS: usize = IdIndex::PARTS;

    /// An empty tree.
    pub fn new() -> Self {
        Self { nodes: Interner::new(), functions: Interner::new() }
    }

    /// Reserves room for `more` frames; false if there is no memory for them.
    #[inline]
    pub fn try_reserve(&mut self, more: usize) -> bool {
        self.nodes.try_reserve(more) && self.functions.try_reserve(more)
    }

    /// The stack that extends `parent` by one frame, with one reference for the caller, and whether the function is new
    /// to the tree.
    #[inline]
    pub fn extend(&mut self, parent: StackId, key: FunctionKey, position: u32) -> (StackId, bool) {
        let mut known = None;
        if parent != StackId::EMPTY {
            let latest = self.nodes.note(parent.0);
            let same = self.nodes.get(latest.0).filter(|node| self.functions.key(node.function.0) == key);
            if same.is_some_and(|node| node.parent == parent && node.position == position) {
                self.nodes.retain(latest.0);
                return (latest, false);
            }
            // Often the same function goes on elsewhere.
            known = same.map(|node| node.function);
        }
        self.look_up(parent, key, known, position)
    }

    /// `known` is the function with that key, if it is at hand.
    fn look_up(
        &mut self,
        parent: StackId,
        key: FunctionKey,
        known: Option<FunctionId>,
        position: u32,
    ) -> (StackId, bool) {
        let (function, new_function) = match known {
            Some(function) => {
                self.functions.retain(function.0);
                (function, false)
            }
            None => {
                let (function, is_new) = self.functions.acquire(key);
                (FunctionId(function), is_new)
            }
        };
        let (node, new_node) = self.nodes.acquire(Node { parent, function, position });
        if new_node {
            self.retain(parent);
        } else {
            self.functions.release(function.0);
        }
        if parent != StackId::EMPTY {
            self.nodes.set_note(parent.0, StackId(node));
        }
        (StackId(node), new_function)
    }

    /// Adds a reference to a stack that has one.
    pub fn retain(&mut self, stack: StackId) {
        if stack != StackId::EMPTY {
            self.nodes.retain(stack.0);
        }
    }

    /// The same stack with one more reference.
    pub fn retained(&mut self, stack: StackId) -> StackId {
        self.retain(stack);
        stack
    }

    /// Releases a reference. The last one takes the frames with it that no other stack shares.
    pub fn release(&mut self, mut stack: StackId) {
        while stack != StackId::EMPTY {
            let Some(node) = self.nodes.release(stack.0) else { return };
            self.functions.release(node.function.0);
            stack = node.parent;
        }
    }

    /// Drops the innermost frames of a stack, as far as only this reference keeps them, and passes them to `dropped`;
    /// with a function, if that was its last frame. Returns what is left of the stack, with the reference.
    pub fn trim(&mut self, mut stack: StackId, mut dropped: impl FnMut(StackId, Option<FunctionId>)) -> StackId {
        while stack != StackId::EMPTY && !self.nodes.is_shared(stack.0) {
            let Some(node) = self.nodes.release(stack.0) else { break };
            let is_last = self.functions.release(node.function.0).is_some();
            dropped(stack, is_last.then_some(node.function));
            stack = node.parent;
        }
        stack
    }

    /// The innermost frame of `stack`, or None for the empty stack.
    pub fn node(&self, stack: StackId) -> Option<Node> {
        (stack != StackId::EMPTY).then(|| self.nodes.key(stack.0))
    }

    /// All stacks, in no particular order, with their innermost frames.
    pub fn stacks(&self) -> impl Iterator<Item = (StackId, Node)> {
        (0..self.nodes.id_bound()).filter_map(|id| Some((StackId(id), self.nodes.get(id)?)))
    }

    /// The key of the function with this number, if there is one.
    pub fn function_at(&self, number: usize) -> Option<FunctionKey> {
        self.functions.get(u32::try_from(number).ok()?)
    }

    /// The key with which `function` was interned.
    pub fn function_key(&self, function: FunctionId) -> FunctionKey {
        self.functions.key(function.0)
    }

    /// Whether any stack refers to the function with this key.
    pub fn has_function(&self, key: FunctionKey) -> bool {
        self.functions.contains(key)
    }

    /// The keys of the functions in use whose ids are in a range.
    pub fn function_keys_of(&self, ids: Range<usize>) -> impl Iterator<Item = FunctionKey> {
        self.functions.keys_of(ids)
    }

    /// Replaces the keys of functions by what `moved` returns for them. Returns whether any key changed.
    pub fn relocate_functions(&mut self, moved: impl FnMut(FunctionKey) -> FunctionKey) -> bool {
        self.functions.relocate(moved)
    }

    /// Gives the innermost frame of `stack` another function, in all stacks that have this frame. Looking up either
    /// frame no longer finds it.
    pub fn replace_function(&mut self, stack: StackId, key: FunctionKey) {
        let Some(node) = self.node(stack) else { return };
        let (function, _) = self.functions.acquire(key);
        self.nodes.detach(stack.0, Node { function: FunctionId(function), ..node });
        self.functions.release(node.function.0);
    }

    /// One past the highest function id ever used.
    pub fn function_bound(&self) -> usize {
        self.functions.id_bound() as usize
    }

    /// One past the highest [`StackId::index`] ever used.
    pub fn id_bound(&self) -> usize {
        self.nodes.id_bound() as usize
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the tree is empty.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of functions.
    pub fn function_count(&self) -> usize {
        self.functions.len()
    }

    /// Frees memory after many stacks were dropped, in one of [`PARTS`](Self::PARTS) parts.
    pub fn shrink(&mut self, part: usize) {
        self.nodes.shrink(part);
        self.functions.shrink(part);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.nodes.bytes() + self.functions.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: u64) -> FunctionKey {
        FunctionKey { code, owner: 0 }
    }

    fn build(tree: &mut StackTree, codes: &[u64]) -> StackId {
        codes.iter().fold(StackId::EMPTY, |parent, &code| {
            let (stack, _) = tree.extend(parent, key(code), 0);
            tree.release(parent);
            stack
        })
    }

    fn codes(tree: &StackTree, mut stack: StackId) -> Vec<u64> {
        let mut found = Vec::new();
        while let Some(node) = tree.node(stack) {
            found.push(tree.function_key(node.function).code);
            stack = node.parent;
        }
        found.reverse();
        found
    }

    #[test]
    fn equal_stacks_are_one() {
        let mut tree = StackTree::new();
        assert_eq!(build(&mut tree, &[1, 2, 3]), build(&mut tree, &[1, 2, 3]));
        assert_eq!(tree.len(), 3);
    }

    #[test]
    fn prefixes_are_shared() {
        let mut tree = StackTree::new();
        build(&mut tree, &[1, 2, 3]);
        build(&mut tree, &[1, 2, 4]);
        assert_eq!(tree.len(), 4);
    }

    #[test]
    fn positions_distinguish_frames() {
        let mut tree = StackTree::new();
        let parent = build(&mut tree, &[2]);
        let (a, _) = tree.extend(parent, key(1), 10);
        let (b, _) = tree.extend(parent, key(1), 11);
        assert_ne!(a, b);
        assert_eq!(tree.function_count(), 2);
    }

    #[test]
    fn each_position_has_a_reference_to_its_function() {
        let mut tree = StackTree::new();
        let parent = build(&mut tree, &[1]);
        let frames = [10, 11, 10].map(|position| tree.extend(parent, key(2), position));
        assert_eq!(frames.map(|(_, is_new)| is_new), [true, false, false]);
        assert_eq!(frames[0].0, frames[2].0);
        frames.into_iter().for_each(|(stack, _)| tree.release(stack));
        assert_eq!((tree.len(), tree.function_count()), (1, 1));
    }

    #[test]
    fn lists_what_is_referenced() {
        let mut tree = StackTree::new();
        let stack = build(&mut tree, &[1, 2]);
        let other = build(&mut tree, &[1, 3]);
        tree.release(stack);
        let found: Vec<_> = tree.stacks().map(|(stack, node)| (stack, tree.function_key(node.function))).collect();
        assert_eq!(found, [(tree.node(other).unwrap().parent, key(1)), (other, key(3))]);
        assert_eq!([0, 1, 2, 3].map(|number| tree.function_at(number)), [Some(key(1)), None, Some(key(3)), None]);
    }

    #[test]
    fn a_dropped_child_is_created_again() {
        let mut tree = StackTree::new();
        let parent = build(&mut tree, &[1]);
        let (child, _) = tree.extend(parent, key(2), 0);
        tree.release(child);
        assert_eq!(tree.extend(parent, key(2), 0), (child, true));
        assert_eq!((tree.len(), tree.function_count()), (2, 2));
    }

    #[test]
    fn a_child_with_a_reused_id_is_not_mistaken_for_the_old_one() {
        let mut tree = StackTree::new();
        let parent = build(&mut tree, &[1]);
        let (child, _) = tree.extend(parent, key(2), 0);
        tree.release(child);
        let (other, _) = tree.extend(StackId::EMPTY, key(2), 0);
        assert_eq!(other, child);
        let (again, _) = tree.extend(parent, key(2), 0);
        assert_eq!(codes(&tree, again), [1, 2]);
    }

    #[test]
    fn the_last_requested_child_has_a_reference_for_each_holder() {
        let mut tree = StackTree::new();
        let parent = build(&mut tree, &[1]);
        let holders = [(); 3].map(|()| tree.extend(parent, key(2), 7).0);
        assert_eq!(tree.len(), 2);
        tree.release(parent);
        holders.into_iter().for_each(|holder| tree.release(holder));
        assert!(tree.is_empty());
    }

    #[test]
    fn trimming_leaves_what_is_shared() {
        let mut tree = StackTree::new();
        let stack = build(&mut tree, &[1, 2, 3, 4, 3]);
        let other = build(&mut tree, &[1, 2, 3]);
        let mut dropped = Vec::new();
        let rest = tree.trim(stack, |stack, function| dropped.push((stack, function.is_some())));
        assert_eq!((rest, tree.len()), (other, 3));
        // Function 3 is still in the other stack.
        assert_eq!(dropped.iter().map(|(_, is_last)| *is_last).collect::<Vec<_>>(), [false, true]);
        assert_eq!(dropped[0].0, stack);
        // The reference now belongs to the rest.
        tree.release(other);
        assert_eq!(codes(&tree, rest), [1, 2, 3]);
        assert_eq!(tree.trim(rest, |_, _| {}), StackId::EMPTY);
        assert!(tree.is_empty() && tree.function_count() == 0);
        assert_eq!(tree.trim(StackId::EMPTY, |_, _| {}), StackId::EMPTY);
    }

    #[test]
    fn a_replaced_function_is_dropped() {
        let mut tree = StackTree::new();
        let stack = build(&mut tree, &[1, 2]);
        let base = build(&mut tree, &[1]);
        tree.replace_function(base, key(3));
        assert_eq!((codes(&tree, stack), tree.has_function(key(1))), (vec![3, 2], false));
        let other = build(&mut tree, &[3]);
        assert_ne!(other, base);
        [stack, base, other].into_iter().for_each(|stack| tree.release(stack));
        assert!(tree.is_empty() && tree.function_count() == 0);
    }

    #[test]
    fn releasing_the_last_stack_empties_the_tree() {
        let mut tree = StackTree::new();
        let stack = build(&mut tree, &[1, 2, 3]);
        let other = build(&mut tree, &[1, 2]);
        tree.release(stack);
        assert_eq!(codes(&tree, other), [1, 2]);
        assert_eq!(tree.function_count(), 2);
        tree.release(other);
        assert!(tree.is_empty());
        assert_eq!(tree.function_count(), 0);
    }
}
