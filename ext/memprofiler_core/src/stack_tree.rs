//! Call stacks, stored once: a tree whose nodes are (parent, function, position).

use crate::interner::Interner;
use std::ops::Range;

/// A function as the program runs it: what code, found through what entry. Both are opaque identities that the caller
/// keeps alive for as long as the tree refers to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FunctionKey {
    /// The code, or 0.
    pub code: u64,
    /// The method entry or other owner through which the code was entered, or 0.
    pub owner: u64,
}

/// A function in the tree. Valid while some stack refers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

/// A stack in the tree, named by its innermost frame. Valid while its holder has not released it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(u32);

impl StackId {
    /// The stack without frames. It is never released.
    pub const EMPTY: Self = Self(u32::MAX);

    /// A number for tables indexed by stack, below [`StackTree::id_bound`]; the empty stack has none.
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
    /// Where in the function, in units of the caller's choice.
    pub position: u32,
}

/// A tree of interned stacks. Every node holds a reference to its parent and its function; what nothing refers to any
/// more is dropped at once.
#[derive(Debug, Default)]
pub struct StackTree {
    nodes: Interner<Node>,
    functions: Interner<FunctionKey>,
}

impl StackTree {
    /// About how many bytes a node takes: its slot and its entry in a hash map that is half full on average, each with
    /// the spare room that they grow by, and its share of the functions.
    pub const BYTES_PER_NODE: usize = 176;

    /// An empty tree.
    pub fn new() -> Self {
        Self { nodes: Interner::new(), functions: Interner::new() }
    }

    /// The stack that extends `parent` by one frame, with one reference for the caller, and whether the function is
    /// new to the tree.
    pub fn extend(&mut self, parent: StackId, key: FunctionKey, position: u32) -> (StackId, bool) {
        let (function, new_function) = self.functions.acquire(key);
        let function = FunctionId(function);
        let (node, new_node) = self.nodes.acquire(Node { parent, function, position });
        if new_node {
            self.retain(parent);
        } else {
            self.functions.release(function.0);
        }
        (StackId(node), new_function)
    }

    /// Adds a reference to a stack that has one.
    pub fn retain(&mut self, stack: StackId) {
        if stack != StackId::EMPTY {
            self.nodes.retain(stack.0);
        }
    }

    /// The same stack with one reference more.
    pub fn retained(&mut self, stack: StackId) -> StackId {
        self.retain(stack);
        stack
    }

    /// Gives back a reference, and with the last one the frames that no other stack shares.
    pub fn release(&mut self, mut stack: StackId) {
        while stack != StackId::EMPTY {
            let Some(node) = self.nodes.release(stack.0) else { return };
            self.functions.release(node.function.0);
            stack = node.parent;
        }
    }

    /// The innermost frame of `stack`, or None for the empty stack.
    pub fn node(&self, stack: StackId) -> Option<Node> {
        (stack != StackId::EMPTY).then(|| self.nodes.key(stack.0))
    }

    /// What `function` was interned as.
    pub fn function_key(&self, function: FunctionId) -> FunctionKey {
        self.functions.key(function.0)
    }

    /// All functions that some stack refers to, in no particular order.
    pub fn function_keys(&self) -> impl Iterator<Item = FunctionKey> {
        self.functions.attached().map(|(key, _)| key)
    }

    /// The functions in use whose ids are in a range.
    pub fn function_keys_of(&self, ids: Range<usize>) -> impl Iterator<Item = FunctionKey> {
        self.functions.keys_of(ids)
    }

    /// One past the highest id of a function ever given out.
    pub fn function_bound(&self) -> usize {
        self.functions.id_bound() as usize
    }

    /// One past the highest [`StackId::index`] ever given out.
    pub fn id_bound(&self) -> usize {
        self.nodes.id_bound() as usize
    }

    /// How many nodes the tree has.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the tree has no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many functions the tree has.
    pub fn function_count(&self) -> usize {
        self.functions.len()
    }

    /// Gives memory back after many stacks were dropped.
    pub fn shrink(&mut self) {
        self.nodes.shrink();
        self.functions.shrink();
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
    fn positions_tell_frames_apart() {
        let mut tree = StackTree::new();
        let (a, _) = tree.extend(StackId::EMPTY, key(1), 10);
        let (b, _) = tree.extend(StackId::EMPTY, key(1), 11);
        assert_ne!(a, b);
        assert_eq!(tree.function_count(), 1);
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
