//! Reads the stacks of samples.

use super::decode::DecodeError;
use super::records::EMPTY_STACK;
use super::wire_fields::{Field, Payload, varint};
use prost::encoding::encode_varint;

/// Remembers the last stack: in most profiles neighbours have their outer frames in
/// common, which then need not be decoded again.
#[derive(Default)]
pub struct StackReader {
    /// The ids of a stack's locations as they are written, the innermost first.
    packed: Vec<u8>,
    /// The same of the stack before.
    last: Vec<u8>,
    /// The stacks that the last one extends and itself, the outermost first.
    stacks: Vec<u32>,
    /// Ids that the last stack does not have.
    ids: Vec<u64>,
}

impl StackReader {
    /// Begins with another stack.
    pub fn clear(&mut self) {
        self.packed.clear();
    }

    /// Adds what a field says, one id or many.
    pub fn push(&mut self, field: &Field<'_>) -> Result<(), DecodeError> {
        match field.payload {
            Payload::Bytes(bytes) if bytes.last().is_some_and(|&byte| !is_last(byte)) => {
                return Err(field.error("location ids", "the last one is cut off"));
            }
            Payload::Bytes(bytes) => self.packed.extend_from_slice(bytes),
            _ => encode_varint(field.number("location id")? as u64, &mut self.packed),
        }
        Ok(())
    }

    /// The stack that was read; `extend` makes one by a frame longer.
    pub fn find(&mut self, mut extend: impl FnMut(u32, u64) -> Result<u32, DecodeError>) -> Result<u32, DecodeError> {
        if self.packed == self.last {
            return Ok(self.stack());
        }
        let (mut inner, outer) = self.packed.split_at(self.packed.len() - shared(&self.packed, &self.last));
        self.stacks.truncate(outer.iter().filter(|&&byte| is_last(byte)).count());
        self.ids.clear();
        while !inner.is_empty() {
            let id = varint(&mut inner);
            self.ids.push(id.ok_or_else(|| DecodeError::Invalid("has an invalid location id".into()))?);
        }
        let mut stack = self.stack();
        for &id in self.ids.iter().rev() {
            stack = extend(stack, id)?;
            self.stacks.push(stack);
        }
        std::mem::swap(&mut self.packed, &mut self.last);
        Ok(stack)
    }

    fn stack(&self) -> u32 {
        self.stacks.last().copied().unwrap_or(EMPTY_STACK)
    }
}

/// Whether a byte of a number is its last one.
#[inline]
fn is_last(byte: u8) -> bool {
    byte < 0x80
}

/// How many bytes at the end of both are the same numbers.
fn shared(a: &[u8], b: &[u8]) -> usize {
    let chunks = 8 * a.rchunks_exact(8).zip(b.rchunks_exact(8)).take_while(|(a, b)| a == b).count();
    let bytes = a.iter().rev().zip(b.iter().rev()).skip(chunks).take_while(|(a, b)| a == b).count();
    let equal = chunks + bytes;
    let starts_number = |bytes: &[u8]| bytes.len() == equal || is_last(bytes[bytes.len() - equal - 1]);
    if starts_number(a) && starts_number(b) {
        return equal;
    }
    // The first number is equal in part.
    let end = a[a.len() - equal..].iter().position(|&byte| is_last(byte));
    end.map_or(0, |end| equal - end - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(numbers: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        numbers.iter().for_each(|&number| encode_varint(number, &mut bytes));
        bytes
    }

    #[test]
    fn shared_numbers_are_whole() {
        // 300 and 200 are [0xac, 2] and [0xc8, 1]; 258 is [0x82, 2] and ends as 300 does.
        let stack = packed(&[1, 300, 200, 7]);
        for (other, expected) in [
            (vec![1, 300, 200, 7], 6),
            (vec![300, 200, 7], 5),
            (vec![2, 300, 200, 7], 5),
            (vec![1, 258, 200, 7], 3),
            (vec![2, 200, 7], 3),
            (vec![200, 8], 0),
            (vec![], 0),
        ] {
            let other = packed(&other);
            assert_eq!((shared(&stack, &other), shared(&other, &stack)), (expected, expected), "{other:?}");
        }
    }

    #[test]
    fn long_stacks_share_what_follows_the_first_difference() {
        let numbers: Vec<u64> = (100..200).collect();
        let stack = packed(&numbers);
        for position in 0..numbers.len() {
            let mut other = numbers.clone();
            other[position] += 1 << 20;
            assert_eq!(shared(&stack, &packed(&other)), packed(&numbers[position + 1..]).len());
        }
    }
}
