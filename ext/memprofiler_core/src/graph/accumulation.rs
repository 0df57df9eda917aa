//! Where the objects of a site accumulate.

use super::{Dominators, Graph, Kind, NodeId};
use std::collections::BinaryHeap;

/// The least part of a node's weight with which a child can be where objects accumulate.
const HEAVY: f32 = 0.2;
/// The same of a named class, whose children are its constants and variables: each is a place of its own.
const HEAVY_IN_CLASS: f32 = 0.02;
/// Among how many nodes further down how many of the same class make a list or tree of it.
const REPETITION: (usize, usize) = (16, 4);
const NONE: u32 = u32::MAX;

/// For each of the given objects, nodes with their weights, the node at which it accumulates with others of them, or
/// itself.
///
/// From the root down the dominator tree: where heavy children have most of a node's weight, their objects accumulate
/// further down, and the others at the node itself; but never at the root or its categories, nor before a named class.
/// What a named class has in a variable accumulates there, unless that is next to nothing.
/// A child with only one of several objects is an object among others, however large. Lists and trees stay whole: each
/// of their objects dominates others of its class.
pub fn accumulation_points(graph: &Graph, dominators: &Dominators, objects: &[(NodeId, f64)]) -> Vec<NodeId> {
    let tree = Tree::new(graph, dominators, objects);
    let opened = tree.opened(graph);
    // Of each entry the nearest opened one, from the root down.
    let mut points = vec![NodeId::ROOT; tree.entries.len()];
    for (number, entry) in tree.entries.iter().enumerate().rev() {
        points[number] = if opened[number] { entry.node } else { points[entry.parent as usize] };
    }
    // What is not in the dominator tree is held by caches alone.
    tree.of_objects
        .iter()
        .zip(objects)
        .map(|(&entry, object)| points.get(entry as usize).copied().unwrap_or(object.0))
        .collect()
}

/// The part of the dominator tree that has the objects: parents after their children, the root last.
struct Tree {
    entries: Vec<Entry>,
    /// For each object its entry.
    of_objects: Vec<u32>,
}

struct Entry {
    node: NodeId,
    parent: u32,
    /// How many objects it has, itself and below.
    objects: u32,
    weight: f32,
    /// The part of these that is itself or in named classes below.
    objects_apart: u32,
    weight_apart: f32,
    /// The child with the greatest weight.
    heaviest: u32,
    /// The weight of the heavy children.
    weight_of_heavy: f32,
}

impl Tree {
    fn new(graph: &Graph, dominators: &Dominators, objects: &[(NodeId, f64)]) -> Self {
        let numbers = objects.iter().enumerate();
        let mut left: Vec<(u32, usize)> =
            numbers.filter_map(|(object, &(node, _))| Some((dominators.number(node)?, object))).collect();
        left.sort_unstable();
        let mut tree = Self { entries: Vec::new(), of_objects: vec![NONE; objects.len()] };
        // The numbers of parents with their children: a parent's number is less than those of its children.
        let mut parents = BinaryHeap::new();
        while let Some(number) = left.last().map(|last| last.0).max(parents.peek().map(|&(number, _)| number)) {
            let this = tree.entries.len() as u32;
            let mut entry = Entry::new(dominators.node(number));
            while let Some(&(_, object)) = left.last().filter(|last| last.0 == number) {
                left.pop();
                tree.of_objects[object] = this;
                entry.objects += 1;
                entry.weight += objects[object].1 as f32;
                (entry.objects_apart, entry.weight_apart) = (entry.objects, entry.weight);
            }
            while let Some(&(_, child)) = parents.peek().filter(|parent| parent.0 == number) {
                parents.pop();
                tree.entries[child as usize].parent = this;
                entry.add(&tree.entries, child, graph);
            }
            tree.entries.push(entry);
            if number != 0 {
                parents.push((dominators.dominator_of(number), this));
            }
        }
        tree.weigh(graph);
        tree
    }

    /// Adds up the heavy children of each entry.
    fn weigh(&mut self, graph: &Graph) {
        for child in 0..self.entries.len() {
            let parent = self.entries[child].parent;
            if parent != NONE && self.is_heavy(child, graph) {
                self.entries[parent as usize].weight_of_heavy += self.entries[child].weight;
            }
        }
    }

    fn is_heavy(&self, child: usize, graph: &Graph) -> bool {
        let child = &self.entries[child];
        let parent = &self.entries[child.parent as usize];
        let one_of_several = child.objects == 1 && parent.objects - parent.objects_apart > 1;
        // Its methods are no places of their own, but objects of the VM.
        let is_variable = is_anchor(graph, parent.node) && graph.class_number(child.node).is_some();
        let least = if is_variable { HEAVY_IN_CLASS } else { HEAVY };
        !is_anchor(graph, child.node) && !one_of_several && child.weight >= least * parent.weight_below()
    }

    /// For each entry whether objects can accumulate there.
    fn opened(&self, graph: &Graph) -> Vec<bool> {
        let mut opened = vec![false; self.entries.len()];
        let mut passed = vec![None; self.entries.len()];
        for (number, entry) in self.entries.iter().enumerate().rev() {
            let Some(parent) = self.entries.get(entry.parent as usize) else {
                opened[number] = true;
                continue;
            };
            opened[number] = opened[entry.parent as usize]
                && (graph.is_root(parent.node)
                    || is_anchor(graph, entry.node)
                    || self.is_heavy(number, graph)
                        && *passed[entry.parent as usize].get_or_insert_with(|| self.is_passed(parent, graph)));
        }
        opened
    }

    /// Whether most of a node's weight accumulates further down.
    fn is_passed(&self, entry: &Entry, graph: &Graph) -> bool {
        2.0 * entry.weight_of_heavy > entry.weight_below() && !self.repeats(entry, graph)
    }

    fn repeats(&self, first: &Entry, graph: &Graph) -> bool {
        let Some(class) = graph.class_number(first.node) else { return false };
        let next = |entry: &&Entry| self.entries.get(entry.heaviest as usize);
        let below = std::iter::successors(Some(first), next).skip(1).take(REPETITION.0);
        below.filter(|entry| graph.class_number(entry.node) == Some(class)).count() >= REPETITION.1
    }
}

impl Entry {
    fn new(node: NodeId) -> Self {
        Self {
            node,
            parent: NONE,
            objects: 0,
            weight: 0.0,
            objects_apart: 0,
            weight_apart: 0.0,
            heaviest: NONE,
            weight_of_heavy: 0.0,
        }
    }

    fn add(&mut self, entries: &[Self], number: u32, graph: &Graph) {
        let child = &entries[number as usize];
        self.objects += child.objects;
        self.weight += child.weight;
        if is_anchor(graph, child.node) {
            self.objects_apart += child.objects;
            self.weight_apart += child.weight;
        }
        if entries.get(self.heaviest as usize).is_none_or(|heaviest| child.weight > heaviest.weight) {
            self.heaviest = number;
        }
    }

    /// The weight of what it has below, but for named classes.
    fn weight_below(&self) -> f32 {
        self.weight - self.weight_apart
    }
}

fn is_anchor(graph: &Graph, node: NodeId) -> bool {
    graph.kind(node) == Kind::Anchor
}
