//! Stacks, each stored once.

use super::records::{EMPTY_STACK, Frame};
use crate::hash::SecretState;
use std::collections::HashMap;

/// A tree of frames. Most frames call one other only, which is found without hashing.
#[derive(Debug)]
pub struct StackTable {
    frames: Vec<Frame>,
    /// For each stack the first one that extends it.
    first: Vec<Extension>,
    /// The others that extend one.
    others: HashMap<Frame, u32, SecretState>,
}

/// A stack that extends another one by a location; or [`EMPTY_STACK`] for none.
#[derive(Debug, Clone, Copy)]
struct Extension {
    location: u32,
    stack: u32,
}

const NOTHING: Extension = Extension { location: u32::MAX, stack: EMPTY_STACK };

impl StackTable {
    /// Only the empty stack.
    pub fn new() -> Self {
        let nothing = Frame { caller: u32::MAX, location: u32::MAX };
        Self { frames: vec![nothing], first: vec![NOTHING], others: HashMap::default() }
    }

    /// The number of the stack `caller` extended by `location`.
    #[inline]
    pub fn extend(&mut self, caller: u32, location: u32) -> u32 {
        let new = self.frames.len() as u32;
        let first = &mut self.first[caller as usize];
        if first.stack == EMPTY_STACK {
            *first = Extension { location, stack: new };
            return self.push(Frame { caller, location });
        }
        if first.location == location { first.stack } else { self.extend_again(Frame { caller, location }) }
    }

    /// The same, `guess` being where it is likely to be found and becoming where the next one is: profiles mostly have
    /// the stacks that they have in common in the same order.
    pub fn extend_near(&mut self, guess: &mut u32, caller: u32, location: u32) -> u32 {
        if self.frames.get(*guess as usize) == Some(&Frame { caller, location }) {
            *guess += 1;
            return *guess - 1;
        }
        let known = self.frames.len() as u32;
        let stack = self.extend(caller, location);
        if stack < known {
            *guess = stack + 1;
        }
        stack
    }

    /// The number of a stack whose caller was extended by another location before.
    #[inline(never)]
    fn extend_again(&mut self, frame: Frame) -> u32 {
        let new = self.frames.len() as u32;
        let stack = *self.others.entry(frame).or_insert(new);
        if stack == new { self.push(frame) } else { stack }
    }

    #[inline]
    fn push(&mut self, frame: Frame) -> u32 {
        self.frames.push(frame);
        self.first.push(NOTHING);
        self.frames.len() as u32 - 1
    }

    /// All frames in order.
    pub fn into_frames(self) -> Vec<Frame> {
        self.frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_one() {
        let mut table = StackTable::new();
        let a = table.extend(EMPTY_STACK, 5);
        let [b, c, d] = [7, 8, 9].map(|location| table.extend(a, location));
        assert_eq!([7, 8, 9].map(|location| table.extend(a, location)), [b, c, d]);
        assert_eq!(table.extend(EMPTY_STACK, 5), a);
        assert_ne!(table.extend(b, 8), c);
        let frames = table.into_frames();
        assert_eq!((frames.len(), frames[c as usize]), (6, Frame { caller: a, location: 8 }));
    }
    #[test]
    fn a_guess_changes_nothing_but_the_next_guess() {
        let mut table = StackTable::new();
        let [mut a, mut b] = [EMPTY_STACK; 2];
        for location in 0..9 {
            a = table.extend(a, location);
            b = table.extend(b, 8 - location);
        }
        for guess in 0..30 {
            for (caller, location, found) in [(EMPTY_STACK, 0, 1), (EMPTY_STACK, 8, 2), (1, 1, 3), (2, 7, 4)] {
                let mut guess = guess;
                assert_eq!((table.extend_near(&mut guess, caller, location), guess), (found, found + 1));
            }
        }
        let mut guess = 7;
        assert_eq!((table.extend_near(&mut guess, a, 1), guess), (19, 7));
    }
}
