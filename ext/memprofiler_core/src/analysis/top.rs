//! Flat and cumulative sums.

use super::estimate::{Estimator, Sum};
use super::grouping::{By, Group, Grouping};
use crate::interrupt::{Interrupt, Interrupted};
use crate::profile::{EMPTY_STACK, Profile};

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
        let rows = profile.rows().iter().map(|row| row.stack);
        let rows = Lists::new(frames.len(), (0..).zip(rows), interrupt)?;
        let callers = frames.iter().map(|frame| frame.caller);
        let calls = Lists::new(frames.len(), (0..).zip(callers).skip(1), interrupt)?;
        for row in rows.of(EMPTY_STACK) {
            interrupt.at(row as usize)?;
            let sum = &estimator.row(row as usize);
            self.flat[no_stack as usize] += sum;
            self.cumulative[no_stack as usize] += sum;
        }
        // How often each group is on the current stack; and those that are, outermost first, each with the sum of what
        // was visited in it, apart from what the next one still has. So there are no more sums than groups, however
        // deep the stack is.
        let mut active = vec![0_u32; grouping.len()];
        let mut sums: Vec<(u32, Sum)> = Vec::new();
        calls.visit(|stack, entering| {
            let groups = grouping.of_location(frames[stack as usize].location);
            if !entering {
                for &group in groups {
                    active[group as usize] -= 1;
                    let left = if active[group as usize] == 0 { sums.pop() } else { None };
                    let Some((group, sum)) = left else { continue };
                    self.cumulative[group as usize] += &sum;
                    sums.last_mut().into_iter().for_each(|(_, caller)| *caller += &sum);
                }
                return Ok(());
            }
            for &group in groups {
                active[group as usize] += 1;
                if active[group as usize] == 1 {
                    sums.push((group, Sum::default()));
                }
            }
            for row in rows.of(stack) {
                interrupt.at(row as usize)?;
                let sum = &estimator.row(row as usize);
                self.flat[groups[0] as usize] += sum;
                sums.last_mut().into_iter().for_each(|(_, innermost)| *innermost += sum);
            }
            interrupt.at(stack as usize)
        })
    }
}

/// The items of each key, linked.
struct Lists {
    first: Vec<u32>,
    next: Vec<u32>,
}

/// The end of a list.
const END: u32 = u32::MAX;

impl Lists {
    /// Of items with their keys, from the first item on.
    fn new(keys: usize, items: impl Iterator<Item = (u32, u32)>, interrupt: &Interrupt) -> Result<Self, Interrupted> {
        let mut lists = Self { first: vec![END; keys], next: Vec::new() };
        for (item, key) in items {
            interrupt.at(item as usize)?;
            let first = &mut lists.first[key as usize];
            lists.next.resize(item as usize, END);
            lists.next.push(std::mem::replace(first, item));
        }
        Ok(lists)
    }

    fn of(&self, key: u32) -> impl Iterator<Item = u32> {
        let mut next = self.first[key as usize];
        std::iter::from_fn(move || {
            let item = next;
            next = *self.next.get(item as usize)?;
            Some(item)
        })
    }

    /// If the items are stacks, and the keys their callers: calls `at` on entering each stack, before those that extend
    /// it, and on leaving it, after them.
    fn visit(&self, mut at: impl FnMut(u32, bool) -> Result<(), Interrupted>) -> Result<(), Interrupted> {
        let mut path = vec![];
        let mut stack = self.first[EMPTY_STACK as usize];
        loop {
            while stack != END {
                at(stack, true)?;
                path.push(stack);
                stack = self.first[stack as usize];
            }
            let Some(left) = path.pop() else { return Ok(()) };
            at(left, false)?;
            stack = self.next[left as usize];
        }
    }
}
