//! Flat and cumulative sums.

use super::estimate::{Estimator, Sum};
use super::grouping::{By, Group, Grouping};
use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::{EMPTY_STACK, Profile, add_to_parents};

/// The figures of one group.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    /// The group.
    pub group: Group,
    /// Allocated directly in it.
    pub flat: Sum,
    /// Allocated in it and in what it calls; recursion counts once.
    pub cumulative: Sum,
}

/// The sums of one column for all groups that have any, in no particular order.
pub fn top(profile: &Profile, column: usize, by: By, interrupt: &Interrupt) -> Result<Vec<Site>, Interrupted> {
    let estimator = Estimator::new(profile, column);
    let mut grouping = Grouping::new(profile, by, interrupt)?;
    let mut sums = Sums::default();
    if by == By::Class {
        for (number, &row) in profile.rows().iter().enumerate() {
            interrupt.at(number)?;
            let sum = &estimator.row(number);
            let group = grouping.of_class(row.labels) as usize;
            sums.reserve(group + 1);
            sums.flat[group] += sum;
            sums.cumulative[group] += sum;
        }
    } else {
        let no_stack = grouping.of_no_stack();
        sums.reserve(grouping.len());
        sums.add_stacks(profile, &estimator, &grouping, no_stack, interrupt)?;
    }
    let sites = grouping.into_groups().into_iter().zip(sums.flat.into_iter().zip(sums.cumulative));
    Ok(sites
        .map(|(group, (flat, cumulative))| Site { group, flat, cumulative })
        .filter(|site| site.flat.value != 0 || site.cumulative.value != 0)
        .collect())
}

/// Each field has one entry per group.
#[derive(Default)]
struct Sums {
    flat: Vec<Sum>,
    cumulative: Vec<Sum>,
}

impl Sums {
    fn reserve(&mut self, groups: usize) {
        if groups > self.flat.len() {
            self.flat.resize(groups, Sum::default());
            self.cumulative.resize(groups, Sum::default());
        }
    }

    fn add_stacks(
        &mut self,
        profile: &Profile,
        estimator: &Estimator<'_>,
        grouping: &Grouping<'_>,
        no_stack: u32,
        interrupt: &Interrupt,
    ) -> Result<(), Interrupted> {
        let frames = &profile.tables().stacks;
        let mut below = vec![Sum::default(); frames.len()];
        for (number, &row) in profile.rows().iter().enumerate() {
            interrupt.at(number)?;
            let sum = &estimator.row(number);
            below[row.stack as usize] += sum;
            let group = match row.stack {
                EMPTY_STACK => no_stack,
                stack => grouping.of_location(frames[stack as usize].location)[0],
            };
            self.flat[group as usize] += sum;
        }
        self.cumulative[no_stack as usize] += &below[EMPTY_STACK as usize];
        let calls = Calls::new(frames.len(), |stack| frames[stack as usize].caller, interrupt)?;
        add_to_parents(&mut below, |stack| frames[stack].caller, interrupt)?;
        // How often each group is on the current stack.
        let mut active = vec![0_u32; grouping.len()];
        let visit = |stack: u32, entering: bool| {
            for &group in grouping.of_location(frames[stack as usize].location) {
                let active = &mut active[group as usize];
                if !entering {
                    *active -= 1;
                    continue;
                }
                *active += 1;
                if *active == 1 {
                    self.cumulative[group as usize] += &below[stack as usize];
                }
            }
        };
        calls.visit(visit, interrupt)
    }
}

/// Stacks, linked from callers to callees.
struct Calls {
    first: Vec<u32>,
    next: Vec<u32>,
}

impl Calls {
    fn new(len: usize, caller: impl Fn(u32) -> u32, interrupt: &Interrupt) -> Result<Self, Interrupted> {
        let mut calls = Self { first: vec![EMPTY_STACK; len], next: vec![EMPTY_STACK; len] };
        for stack in 1..len as u32 {
            interrupt.at(stack as usize)?;
            let first = &mut calls.first[caller(stack) as usize];
            calls.next[stack as usize] = std::mem::replace(first, stack);
        }
        Ok(calls)
    }

    /// Calls `at` on entering each stack, before those that extend it, and on leaving it, after them.
    fn visit(&self, mut at: impl FnMut(u32, bool), interrupt: &Interrupt) -> Result<(), Interrupted> {
        let mut path = vec![];
        let mut stack = self.first[EMPTY_STACK as usize];
        loop {
            while stack != EMPTY_STACK {
                interrupt.at(stack as usize)?;
                at(stack, true);
                path.push(stack);
                stack = self.first[stack as usize];
            }
            let Some(left) = path.pop() else { return Ok(()) };
            at(left, false);
            stack = self.next[left as usize];
        }
    }
}
