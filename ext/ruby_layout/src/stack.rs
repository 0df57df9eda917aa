//! The stack of a thread that may go on meanwhile.
//!
//! What changes between two readings is not to be trusted: of two copies of a stack, right after one another, only what
//! they have in common is used. If a call began or ended in between they are made again, a few times; what a thread
//! that never stops calling has in common is then the outer part of its stack.

use crate::frames::{Frame, Frames, Running};
use crate::iseq;
use crate::layout::{self, Layout};
use crate::memory::{Memory, Paged, Snapshot};
use crate::reader::Reader;

const WORD: usize = size_of::<usize>();
/// How often a stack is read until it does not change.
const ATTEMPTS: usize = 50;
/// The greatest VM stack, in bytes: RUBY_THREAD_VM_STACK_SIZE can be set, and is 1 MB.
const GREATEST_STACK: usize = 256 << 20;
/// The fields of a context that say where its frames are.
const CONTEXT_SIZE: usize = layout::EC_CFP + WORD;

/// A call that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Call {
    /// The instruction sequence, or 0 for a C function.
    pub iseq: usize,
    /// The method entry, or 0 outside methods.
    pub entry: usize,
    /// Where the code of the instruction sequence, or the definition of the C function, is: to recognise it again.
    pub code: usize,
    /// The number of a word of the code; 0 for a C function.
    pub index: usize,
}

/// A stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// The outermost call first.
    pub calls: Vec<Call>,
    /// Whether no calls are missing at the end.
    pub is_complete: bool,
}

/// A copy of what a stack consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackCopy {
    context: Vec<u8>,
    frames: (usize, Vec<u8>),
    environments: (usize, Vec<u8>),
}

impl<M: Memory> Reader<Paged<M>> {
    /// The stack of an execution context.
    pub fn stack(&self, context: usize) -> Result<Stack, M::Error> {
        let mut best: Vec<Call> = Vec::new();
        let mut failure = None;
        for _ in 0..ATTEMPTS {
            // The pages are to be newer than what refers to them.
            let copies = self.copy(context).and_then(|copy| Ok([copy, self.copy(context)?]));
            self.memory.forget();
            let calls =
                copies.and_then(|[first, second]| Ok([self.calls(context, first)?, self.calls(context, second)?]));
            match calls {
                Ok([first, second]) => {
                    let common = common(&first, &second);
                    if common == first.len() && common == second.len() {
                        return Ok(Stack { calls: second, is_complete: true });
                    }
                    if common > best.len() {
                        best = second;
                        best.truncate(common);
                    }
                }
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if best.is_empty() => Err(error),
            _ => Ok(Stack { calls: best, is_complete: false }),
        }
    }

    /// Copies the stack of an execution context, as it is at the moment or torn.
    pub fn copy(&self, context: usize) -> Result<StackCopy, M::Error> {
        let memory = self.memory.memory();
        let fields = memory.bytes(context, CONTEXT_SIZE)?;
        let mut known = Snapshot::new(memory);
        known.add(context, fields.clone());
        let stack = known.word(context.wrapping_add(layout::EC_VM_STACK))?;
        let innermost = known.word(context.wrapping_add(layout::EC_CFP))?;
        let frames = Frames::of(&known, self.layout, context)?;
        let (size, whole) = (frames.end.wrapping_sub(innermost), frames.end.wrapping_sub(stack));
        if frames.count > 0 && whole > GREATEST_STACK {
            self.memory.reject()?;
        }
        if frames.count == 0 || whole > GREATEST_STACK {
            return Ok(StackCopy { context: fields, frames: (0, Vec::new()), environments: (0, Vec::new()) });
        }
        let copied = memory.bytes(innermost, size)?;
        // Environments grow towards higher addresses; some are on the heap.
        let words = copied.chunks_exact(self.layout.cfp_size).filter_map(|frame| word_at(frame, layout::CFP_EP));
        let last = words.filter(|ep| (stack..innermost).contains(ep)).max();
        let environments = match last {
            Some(last) => (stack, memory.bytes(stack, last.wrapping_sub(stack).wrapping_add(WORD))?),
            None => (stack, Vec::new()),
        };
        Ok(StackCopy { context: fields, frames: (innermost, copied), environments })
    }

    /// The calls in a copy.
    pub fn calls(&self, context: usize, copy: StackCopy) -> Result<Vec<Call>, M::Error> {
        let mut memory = Snapshot::new(&self.memory);
        memory.add(context, copy.context);
        memory.add(copy.frames.0, copy.frames.1);
        memory.add(copy.environments.0, copy.environments.1);
        calls(&memory, self.layout, context)
    }
}

/// What two stacks have in common, from the outermost call on; in the last one another instruction may run.
fn common(first: &[Call], second: &[Call]) -> usize {
    let same = first.iter().zip(second).take_while(|(first, second)| first == second).count();
    let goes_on = first.get(same).zip(second.get(same)).is_some_and(|(first, second)| {
        (first.iseq, first.entry, first.code) == (second.iseq, second.entry, second.code)
    });
    same + usize::from(goes_on)
}

fn calls<M: Memory>(memory: &M, layout: &Layout, context: usize) -> Result<Vec<Call>, M::Error> {
    let frames = Frames::of(memory, layout, context)?;
    if frames.count > GREATEST_STACK / layout.cfp_size {
        memory.reject()?;
        return Ok(Vec::new());
    }
    let mut calls = Vec::with_capacity(frames.count);
    for number in 0..frames.count {
        let frame = Frame::at(memory, frames.address(layout, number))?;
        let entry = frame.method_entry(memory)?;
        match frame.running(memory, entry)? {
            Running::Ruby { index } => {
                check(memory, layout, frame.iseq, entry)?;
                let (code, _) = iseq::code(memory, frame.iseq)?;
                calls.push(Call { iseq: frame.iseq, entry, code, index });
            }
            Running::Native => {
                let code = memory.word(entry.wrapping_add(layout::ME_DEF))?;
                calls.push(Call { iseq: 0, entry, code, index: 0 });
            }
            Running::Hidden => (),
        }
    }
    Ok(calls)
}

/// Rejects a frame that does not belong to its environment: only a method's has that method's entry.
fn check<M: Memory>(memory: &M, layout: &Layout, iseq: usize, entry: usize) -> Result<(), M::Error> {
    if entry == 0 {
        return if iseq::kind(memory, iseq)? == layout::ISEQ_TYPE_METHOD { memory.reject() } else { Ok(()) };
    }
    let definition = memory.word(entry.wrapping_add(layout::ME_DEF))?;
    if memory.word(definition)? & layout::METHOD_TYPE_MASK != layout::METHOD_TYPE_ISEQ {
        return Ok(());
    }
    let local = memory.word(iseq::body(memory, iseq)?.wrapping_add(layout.iseq_body_local_iseq))?;
    let same = memory.word(definition.wrapping_add(layout::METHOD_DEF_ISEQ))? == local;
    if same { Ok(()) } else { memory.reject() }
}

fn word_at(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from_ne_bytes(bytes.get(at..at.checked_add(WORD)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(iseq: usize, index: usize) -> Call {
        Call { iseq, entry: 0, code: 0, index }
    }

    #[test]
    fn only_the_innermost_call_may_go_on() {
        let stack = [call(1, 5), call(2, 5)];
        assert_eq!(common(&stack, &[call(1, 5), call(2, 6)]), 2);
        assert_eq!(common(&stack, &[call(1, 6), call(2, 5)]), 1);
        assert_eq!(common(&stack, &[call(1, 5), call(3, 5)]), 1);
        assert_eq!(common(&stack, &[call(3, 5), call(2, 5)]), 0);
    }
}
