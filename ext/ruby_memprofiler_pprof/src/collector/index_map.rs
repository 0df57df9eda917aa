//! What a flush notes beside stacks.

use memprofiler_core::stack_tree::StackId;

/// A map from stacks, whose ids are small numbers. The empty stack is never in it.
#[derive(Debug)]
pub struct IndexMap<T> {
    values: Vec<Option<T>>,
}

impl<T: Copy> IndexMap<T> {
    /// What is noted beside `stack`.
    #[inline]
    pub fn get(&self, stack: StackId) -> Option<T> {
        self.values.get(stack.index()?).copied().flatten()
    }

    /// Notes `value` beside `stack`.
    pub fn insert(&mut self, stack: StackId, value: T) {
        let Some(index) = stack.index() else { return };
        if index >= self.values.len() {
            self.values.resize((index + 1).next_power_of_two(), None);
        }
        self.values[index] = Some(value);
    }
}

impl<T> Default for IndexMap<T> {
    fn default() -> Self {
        Self { values: Vec::new() }
    }
}
