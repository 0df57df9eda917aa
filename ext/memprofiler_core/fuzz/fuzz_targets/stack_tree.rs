//! Compares the stack tree with plain lists of frames.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use memprofiler_core::stack_tree::{FunctionKey, StackId, StackTree};
use std::collections::{BTreeMap, BTreeSet};

type Frames = Vec<(u8, u8)>;

#[derive(Debug, Arbitrary)]
enum Step {
    /// Extends the held stack with this number, and holds the result.
    Extend(u8, u8, u8),
    /// Holds a stack again.
    Retain(u8),
    /// Releases a held stack.
    Release(u8),
    Shrink,
}

fn key(function: u8) -> FunctionKey {
    FunctionKey { code: u64::from(function & 15), owner: u64::from(function >> 4) }
}

fn frames(tree: &StackTree, mut stack: StackId) -> Vec<(FunctionKey, u32)> {
    let mut frames = Vec::new();
    while let Some(node) = tree.node(stack) {
        frames.push((tree.function_key(node.function), node.position));
        stack = node.parent;
    }
    frames.reverse();
    frames
}

fuzz_target!(|steps: Vec<Step>| {
    let mut tree = StackTree::new();
    // Each entry is a reference.
    let mut held: Vec<(StackId, Frames)> = Vec::new();
    for step in steps {
        match step {
            Step::Extend(parent, function, position) => {
                let (stack, mut list) =
                    held.get(usize::from(parent)).cloned().unwrap_or((StackId::EMPTY, Frames::new()));
                let known = held.iter().flat_map(|(_, list)| list).any(|&(other, _)| key(other) == key(function));
                let (extended, new_function) = tree.extend(stack, key(function), position.into());
                assert_eq!(new_function, !known);
                list.push((function, position));
                held.push((extended, list));
            }
            Step::Retain(number) => {
                if let Some(entry) = held.get(usize::from(number)).cloned() {
                    tree.retain(entry.0);
                    held.push(entry);
                }
            }
            Step::Release(number) if usize::from(number) < held.len() => {
                tree.release(held.swap_remove(usize::from(number)).0);
            }
            Step::Release(_) => {}
            Step::Shrink => (0..StackTree::PARTS).for_each(|part| tree.shrink(part)),
        }
        let prefixes: BTreeSet<&[(u8, u8)]> =
            held.iter().flat_map(|(_, list)| (1..=list.len()).map(|length| &list[..length])).collect();
        assert_eq!(tree.len(), prefixes.len());
        let functions: BTreeSet<u8> = held.iter().flat_map(|(_, list)| list).map(|&(function, _)| function).collect();
        assert_eq!(tree.function_count(), functions.len());
    }
    let mut ids = BTreeMap::new();
    for (stack, list) in &held {
        let expected: Vec<_> = list.iter().map(|&(function, position)| (key(function), u32::from(position))).collect();
        assert_eq!(frames(&tree, *stack), expected);
        assert_eq!(ids.entry(list).or_insert(*stack), stack);
    }
    held.drain(..).for_each(|(stack, _)| tree.release(stack));
    assert!(tree.is_empty());
    assert_eq!(tree.function_count(), 0);
});
