//! Stacks with shared prefixes: a tree that stores each prefix once.

use crate::hash::SecretState;
use crate::interrupt::{Interrupt, Interrupted};
use std::collections::HashMap;
use std::hash::Hash;
use std::ops::AddAssign;

/// A node is a number and the item by which it extends its parent, which has a smaller number; it is stored as an `N`.
/// Most nodes have a single child, which is found without hashing.
#[derive(Debug)]
pub struct PrefixTree<T, N = (u32, T)> {
    nodes: Vec<N>,
    /// The first child of each node.
    first: Vec<Child<T>>,
    /// The other children.
    others: HashMap<(u32, T), u32, SecretState>,
}

/// An item, and the node that it leads to, or [`ROOT`] if none.
#[derive(Debug, Clone, Copy)]
struct Child<T> {
    item: T,
    node: u32,
}

/// The number of the root.
pub const ROOT: u32 = 0;

impl<T: Copy + Eq + Hash, N: Copy + PartialEq + From<(u32, T)>> PrefixTree<T, N> {
    /// A tree with only the root, whose item has no meaning.
    pub fn new(item: T) -> Self {
        let first = vec![Child { item, node: ROOT }];
        Self { nodes: vec![N::from((ROOT, item))], first, others: HashMap::default() }
    }

    /// The number of the child of `parent` with that item.
    #[inline]
    pub fn child(&mut self, parent: u32, item: T) -> u32 {
        let new = self.nodes.len() as u32;
        let first = &mut self.first[parent as usize];
        if first.node == ROOT {
            *first = Child { item, node: new };
            return self.push(parent, item);
        }
        if first.item == item { first.node } else { self.other_child(parent, item) }
    }

    /// Like [`child`](Self::child). `guess` is where the node is likely to be, and is updated to the likely place of
    /// the next one: profiles mostly list the stacks that they share in the same order.
    pub fn child_near(&mut self, guess: &mut u32, parent: u32, item: T) -> u32 {
        if self.nodes.get(*guess as usize) == Some(&N::from((parent, item))) {
            *guess += 1;
            return *guess - 1;
        }
        let known = self.nodes.len() as u32;
        let node = self.child(parent, item);
        if node < known {
            *guess = node + 1;
        }
        node
    }

    /// A child other than the first.
    #[inline(never)]
    fn other_child(&mut self, parent: u32, item: T) -> u32 {
        let new = self.nodes.len() as u32;
        let node = *self.others.entry((parent, item)).or_insert(new);
        if node == new { self.push(parent, item) } else { node }
    }

    #[inline]
    fn push(&mut self, parent: u32, item: T) -> u32 {
        self.nodes.push(N::from((parent, item)));
        self.first.push(Child { item, node: ROOT });
        self.nodes.len() as u32 - 1
    }

    /// The number of nodes, including the root.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// All nodes in order.
    pub fn nodes(&self) -> &[N] {
        &self.nodes
    }

    /// All nodes in order.
    pub fn into_nodes(self) -> Vec<N> {
        self.nodes
    }
}

/// Adds the values of each node's descendants to its own; `parent` returns the parent of a node.
pub fn add_to_parents<V: for<'a> AddAssign<&'a V>>(
    sums: &mut [V],
    parent: impl Fn(usize) -> u32,
    interrupt: &Interrupt,
) -> Result<(), Interrupted> {
    for node in (1..sums.len()).rev() {
        interrupt.at(node)?;
        // Parents have smaller numbers.
        let (before, from_node) = sums.split_at_mut(node);
        before[parent(node) as usize] += &from_node[0];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_paths_lead_to_one_node() {
        let mut tree: PrefixTree<u32> = PrefixTree::new(u32::MAX);
        let a = tree.child(ROOT, 5);
        let [b, c, d] = [7, 8, 9].map(|item| tree.child(a, item));
        assert_eq!([7, 8, 9].map(|item| tree.child(a, item)), [b, c, d]);
        assert_eq!(tree.child(ROOT, 5), a);
        assert_ne!(tree.child(b, 8), c);
        let nodes = tree.into_nodes();
        assert_eq!((nodes.len(), nodes[c as usize]), (6, (a, 8)));
    }

    #[test]
    fn a_guess_only_affects_the_next_guess() {
        let mut tree: PrefixTree<u32> = PrefixTree::new(u32::MAX);
        let [mut a, mut b] = [ROOT; 2];
        for item in 0..9 {
            a = tree.child(a, item);
            b = tree.child(b, 8 - item);
        }
        for guess in 0..30 {
            for (caller, item, found) in [(ROOT, 0, 1), (ROOT, 8, 2), (1, 1, 3), (2, 7, 4)] {
                let mut guess = guess;
                assert_eq!((tree.child_near(&mut guess, caller, item), guess), (found, found + 1));
            }
        }
        let mut guess = 7;
        assert_eq!((tree.child_near(&mut guess, a, 1), guess), (19, 7));
    }

    #[test]
    fn parents_have_the_sums_of_their_descendants() {
        let mut tree: PrefixTree<u32> = PrefixTree::new(0);
        let a = tree.child(ROOT, 1);
        let [b, c] = [2, 3].map(|item| tree.child(a, item));
        tree.child(c, 4);
        tree.child(b, 4);
        let mut sums = [1, 10, 100, 1000, 10_000, 100_000];
        add_to_parents(&mut sums, |node| tree.nodes()[node].0, &Interrupt::default()).unwrap();
        assert_eq!(sums, [111_111, 111_110, 100_100, 11_000, 10_000, 100_000]);
    }
}
