//! The fields of pprof's outermost message, one by one.

use super::DecodeError;
use crate::interrupt::Interrupt;
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_varint, skip_field};
use std::fmt::Display;

/// The maximum length of a table entry, in bytes. Each is read at once; none is as long as that in practice.
const LONGEST_MESSAGE: usize = 1 << 20;

/// A field.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    /// Where it begins.
    pub offset: usize,
    /// Its number.
    pub number: u32,
    /// What it holds.
    pub payload: Payload<'a>,
}

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// A number.
    Varint(u64),
    /// A message, a string, or numbers.
    Bytes(&'a [u8]),
    /// A type that pprof does not use, so far.
    Other,
}

impl<'a> Field<'a> {
    /// The error `reason` in this field, which is called `what`.
    pub fn error(&self, what: &str, reason: impl Display) -> DecodeError {
        DecodeError::new(format_args!("{what} at byte {}", self.offset), reason)
    }

    /// The bytes of a message, a string, or numbers.
    pub fn bytes(&self, what: &str) -> Result<&'a [u8], DecodeError> {
        match self.payload {
            Payload::Bytes(bytes) => Ok(bytes),
            _ => Err(self.error(what, "is of the wrong type")),
        }
    }

    /// A number.
    pub fn number(&self, what: &str) -> Result<i64, DecodeError> {
        match self.payload {
            Payload::Varint(number) => Ok(number as i64),
            _ => Err(self.error(what, "is not a number")),
        }
    }

    /// Numbers, either a single one or a packed list.
    pub fn numbers(&self, what: &str, into: &mut Vec<i64>, interrupt: &Interrupt) -> Result<(), DecodeError> {
        let Payload::Bytes(mut packed) = self.payload else {
            into.push(self.number(what)?);
            return Ok(());
        };
        while !packed.is_empty() {
            interrupt.at(into.len())?;
            let number = varint(&mut packed).ok_or_else(|| self.error(what, "has an invalid number"))?;
            into.push(number as i64);
        }
        Ok(())
    }

    /// A message other than a sample, number `index` of its kind.
    pub fn message<M: Message + Default>(&self, what: &str, index: usize) -> Result<M, DecodeError> {
        let bytes = self.bytes(what)?;
        if bytes.len() > LONGEST_MESSAGE {
            let reason = format_args!("has {} bytes, at most {LONGEST_MESSAGE} are allowed", bytes.len());
            return Err(self.error(&format!("{what} {index}"), reason));
        }
        M::decode(bytes).map_err(|error| self.error(&format!("{what} {index}"), error))
    }
}

/// The fields of `bytes`; ends at the first error.
#[inline]
pub fn fields(bytes: &[u8]) -> Fields<'_> {
    Fields { rest: bytes, len: bytes.len() }
}

/// See [`fields`].
pub struct Fields<'a> {
    rest: &'a [u8],
    /// The total number of bytes.
    len: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, DecodeError>;

    // Unless inlined, a field would be written in parts and read back whole, which stalls the processor.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let offset = self.len - self.rest.len();
        let start = self.rest;
        let field = next(&mut self.rest, offset);
        if field.is_none() {
            self.rest = &[];
        }
        Some(field.ok_or_else(|| DecodeError::new(format_args!("byte {offset}"), why_invalid(start))))
    }
}

/// Takes a field off the front; None if it is invalid.
#[inline(always)]
fn next<'a>(rest: &mut &'a [u8], offset: usize) -> Option<Field<'a>> {
    let (number, wire_type) = key(rest)?;
    let payload = match wire_type {
        WireType::Varint => Payload::Varint(varint(rest)?),
        WireType::LengthDelimited => {
            let length = usize::try_from(varint(rest)?).ok()?;
            let (bytes, after) = rest.split_at_checked(length)?;
            *rest = after;
            Payload::Bytes(bytes)
        }
        other => {
            skip_field(other, number, rest, DecodeContext::default()).ok()?;
            Payload::Other
        }
    };
    Some(Field { offset, number, payload })
}

#[inline(always)]
fn key(rest: &mut &[u8]) -> Option<(u32, WireType)> {
    let key = u32::try_from(varint(rest)?).ok()?;
    let wire_type = WireType::try_from(u64::from(key & 7)).ok()?;
    (key >> 3 > 0).then_some((key >> 3, wire_type))
}

/// What is wrong with the field at the front.
#[cold]
fn why_invalid(mut rest: &[u8]) -> String {
    match key(&mut rest) {
        None => "there is no field".into(),
        Some((number, WireType::LengthDelimited)) => match varint(&mut rest) {
            Some(length) => format!("field {number} has {length} bytes, but only {} are left", rest.len()),
            None => format!("field {number} has no length"),
        },
        Some((number, _)) => format!("field {number} is cut off or invalid"),
    }
}

/// Takes a number off the front; None if it is invalid. Most have one or two bytes.
#[inline(always)]
pub fn varint(bytes: &mut &[u8]) -> Option<u64> {
    match **bytes {
        [low, ref rest @ ..] if low < 0x80 => {
            *bytes = rest;
            Some(low.into())
        }
        [low, high, ref rest @ ..] if high < 0x80 => {
            *bytes = rest;
            Some(u64::from(low & 0x7f) | u64::from(high) << 7)
        }
        _ => long_varint(bytes),
    }
}

#[inline(never)]
fn long_varint(bytes: &mut &[u8]) -> Option<u64> {
    decode_varint(bytes).ok()
}
