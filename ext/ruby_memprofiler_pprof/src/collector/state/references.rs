//! What keeps stacks, classes and names in the tables.

use super::State;
use crate::collector::keys::{Class, Function};
use crate::vm::gc;
use crate::vm::object::is_heap;
use memprofiler_core::reservoir::ClassId;
use memprofiler_core::stack_tree::FunctionKey;
use rb_sys::VALUE;
use std::collections::HashSet;
use std::ops::Range;

impl State {
    /// The id of a class, with one reference for the caller. A class stored for the first time is announced to the GC
    /// as a reference of `holder`.
    ///
    /// # Safety
    /// In a hook or with the GVL held; `holder` alive, and `class` if it is an object.
    pub unsafe fn class_id(&mut self, class: Class, holder: VALUE) -> ClassId {
        let class = if self.options.object_class { class } else { Class::Unknown };
        let key = class.key();
        if let Some((latest, id)) = self.latest_class {
            if latest == key {
                self.classes.retain(id.0);
                return id;
            }
        }
        let (id, new) = self.classes.acquire(key);
        if new {
            if let Class::Object(value) = class {
                self.capture.pins.add(true);
                // SAFETY: in a hook or with the GVL held; both are alive.
                unsafe { gc::write_barrier(holder, value) };
            }
        }
        self.latest_class = Some((key, ClassId(id)));
        ClassId(id)
    }

    /// Lets `id` stand for what `named` stands for. What it stood for gets another id from now on, and may go.
    pub fn detach_class(&mut self, id: ClassId, named: ClassId) {
        self.classes.detach(id.0, self.classes.key(named.0));
        self.latest_class = None;
    }

    /// Gives up some of the leftovers. Returns whether all is done.
    pub fn release_leftovers(&mut self, some: usize) -> bool {
        let mut left = std::mem::take(&mut self.leftovers);
        for stack in left.stacks.drain(left.stacks.len().saturating_sub(some)..) {
            self.capture.stacks.release(stack);
        }
        for class in left.classes.drain(left.classes.len().saturating_sub(some)..) {
            self.release_class(class);
        }
        self.leftovers = left;
        self.leftovers.stacks.is_empty() && self.leftovers.classes.is_empty()
    }

    /// Drops those names that no stack or class refers to any more, of `some` from number `first` on. Returns the next
    /// number, unless that is all.
    pub fn prune_names(&mut self, first: usize, some: usize) -> Option<usize> {
        let placeholders = self.capture.placeholders();
        let stacks = &self.capture.stacks;
        if first == 0 {
            let named = self.classes.keys_of(0..usize::MAX).filter_map(|key| match Class::of(key) {
                Class::Named(id) => Some(id),
                _ => None,
            });
            let used: HashSet<u32> = named.collect();
            self.class_names.prune(0..usize::MAX, |id| used.contains(&id));
            self.capture.labels.prune(0..usize::MAX, |id| stacks.has_function(Function::Labels(id).key()));
        }
        self.function_names.prune(first..first + some, |id| {
            placeholders.contains(&id) || stacks.has_function(Function::Named(id).key())
        });
        let next = first + some;
        (next < self.function_names.id_bound()).then_some(next)
    }

    /// The instruction sequences and method entries that functions with ids in a range refer to.
    pub fn function_references(&self, ids: Range<usize>) -> impl Iterator<Item = VALUE> {
        let keys = self.capture.stacks.function_keys_of(ids);
        keys.flat_map(|key| [key.code as VALUE, key.owner as VALUE]).filter(|&value| is_heap(value))
    }

    /// The classes that this state refers to.
    pub fn class_references(&self) -> impl Iterator<Item = VALUE> {
        self.classes.keys_of(0..usize::MAX).filter_map(|key| match Class::of(key) {
            Class::Object(class) => Some(class),
            _ => None,
        })
    }

    /// Follows what compaction has moved. What was marked is pinned; but Ruby 3.1 lets the program run while it compacts,
    /// and what is referred to for the first time then is not.
    ///
    /// # Safety
    /// Only in a compact function.
    pub unsafe fn relocate_references(&mut self) {
        let location = |value: u64| {
            if !is_heap(value as VALUE) {
                return value;
            }
            // SAFETY: in a compact function. What is referred to was kept alive, marked or in use, so that its slot has
            // it still or says where it went.
            unsafe { gc::location(value as VALUE) }
        };
        let moved = |key: FunctionKey| FunctionKey { code: location(key.code), owner: location(key.owner) };
        if self.capture.stacks.relocate_functions(moved) {
            // Something else may come to lie where a frame's method entry was.
            self.capture.forget_contexts();
        }
        let moved = |key| match Class::of(key) {
            Class::Object(class) => Class::Object(location(class)).key(),
            _ => key,
        };
        if self.classes.relocate(moved) {
            self.latest_class = None;
        }
    }

    /// How many functions are not known by name yet, and keep the VM's objects alive, or a deferred stack.
    pub fn unnamed_functions(&self) -> usize {
        let keys = self.capture.stacks.function_keys_of(0..usize::MAX);
        keys.filter(|&key| !matches!(Function::of(key), Function::Named(_) | Function::Labels(_))).count()
    }

    /// How many objects this state keeps alive.
    pub fn reference_count(&self) -> usize {
        self.function_references(0..usize::MAX).count() + self.class_references().count()
    }
}
