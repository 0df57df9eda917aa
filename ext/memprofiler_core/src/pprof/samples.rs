//! Reads the samples of a profile.

use super::DecodeError;
use super::message::{self, field, sample_field};
use super::tables::References;
use super::windows::WindowsReader;
use super::wire::{Field, Payload, fields, varint};
use crate::interrupt::Interrupt;
use crate::profile::{Builder, EMPTY_STACK, Header, Label, LabelValue, Magnitudes, Row, Scheme};
use prost::encoding::encode_varint;

/// Turns samples into rows, and adds what they refer to to a builder.
pub struct SampleDecoder<'a> {
    builder: &'a mut Builder,
    references: &'a References<'a>,
    /// The number of values per sample.
    width: usize,
    scheme: Scheme,
    stack: LastStack,
    labels: Vec<Label>,
    /// The label of what was subtracted, if the profile has its strings.
    base_label: Option<Label>,
    windows: WindowsReader,
    magnitudes: Magnitudes,
    rows: Vec<Row>,
    values: Vec<i64>,
}

impl<'a> SampleDecoder<'a> {
    /// A decoder that has read nothing yet. The builder already has what the tables hold.
    pub fn new(builder: &'a mut Builder, references: &'a References<'a>, header: &Header) -> Self {
        let (width, scheme) = (header.sample_types.len(), Scheme::of(header));
        let (stack, labels, rows, values) = (LastStack::default(), Vec::new(), Vec::new(), Vec::new());
        let (windows, magnitudes) = (WindowsReader::new(header, builder), Magnitudes::of(header));
        let (key, value) = message::BASE_LABEL;
        let base_label = builder.find_string(key).zip(builder.find_string(value));
        let base_label = base_label.map(|(key, text)| Label { key, value: LabelValue::Text(text) });
        // A profile without samples has a scheme, too.
        builder.scheme(scheme);
        Self { builder, references, width, scheme, stack, labels, base_label, windows, magnitudes, rows, values }
    }

    /// Reads all samples of a profile.
    pub fn read(&mut self, plain: &[u8], interrupt: &Interrupt) -> Result<(), DecodeError> {
        let samples = fields(plain).filter(|field| field.as_ref().is_ok_and(|field| field.number == field::SAMPLE));
        for (index, field) in samples.enumerate() {
            interrupt.at(index)?;
            let field = field?;
            let bytes = field.bytes("sample")?;
            self.sample(bytes, interrupt)
                .map_err(|error| error.within(format_args!("sample {index} at byte {}", field.offset)))?;
        }
        Ok(())
    }

    /// The rows of each sample, even if they equal those of others, and the values of all.
    pub fn into_rows(self) -> (Vec<Row>, Vec<i64>) {
        (self.rows, self.values)
    }

    fn sample(&mut self, bytes: &[u8], interrupt: &Interrupt) -> Result<(), DecodeError> {
        let start = self.values.len();
        self.stack.clear();
        self.labels.clear();
        self.windows.clear();
        let mut scheme = self.scheme;
        for (step, field) in (1..).zip(fields(bytes)) {
            interrupt.at(step)?;
            let field = field?;
            match field.number {
                sample_field::LOCATION_ID => self.stack.push(&field)?,
                sample_field::VALUE => field.numbers("value", &mut self.values, interrupt)?,
                sample_field::LABEL => {
                    let label = self.label(field.message("label", self.labels.len())?)?;
                    if Some(label) == self.base_label {
                        scheme.base = true;
                    } else if !self.windows.take(label) {
                        self.labels.push(label);
                    }
                }
                _ => {}
            }
        }
        let count = self.values.len() - start;
        if count != self.width {
            return Err(DecodeError::Invalid(format!("has {count} values for {} sample types", self.width)));
        }
        let extend = |caller, id| Ok(self.builder.extend(caller, self.references.location(id)?));
        let stack = self.stack.find(extend, interrupt)?;
        self.labels.sort_unstable();
        let labels = self.builder.label_set(&self.labels);
        self.add_rows(stack, labels, scheme);
        Ok(())
    }

    /// Adds the rows of the sample whose values were read last: what was not taken in windows, then each group.
    fn add_rows(&mut self, stack: u32, labels: u32, scheme: Scheme) {
        let Self { builder, windows, magnitudes, rows, values, .. } = self;
        let (start, number) = (values.len() - self.width, rows.len());
        rows.push(Row::new(stack, labels, builder.scheme(scheme)));
        windows.split(values, start, |group| {
            rows.push(Row::new(stack, labels, builder.scheme(scheme.within(Some(group)))));
        });
        rows[number].magnitude = magnitudes.of_row(scheme, &values[start..]);
    }

    fn label(&self, label: message::Label) -> Result<Label, DecodeError> {
        let string = |index| self.references.string(index, || "label".into());
        // An empty string and the number 0 without a unit are written the same way.
        let value = match string(label.str)? {
            0 => LabelValue::Number(label.num, string(label.num_unit)?),
            text => LabelValue::Text(text),
        };
        Ok(Label { key: string(label.key)?, value })
    }
}

/// Reads stacks and remembers the last one: in most profiles neighbouring stacks share their outer frames, which then
/// need not be decoded again.
#[derive(Default)]
struct LastStack {
    /// The location ids of a stack as they are encoded, innermost first.
    packed: Vec<u8>,
    /// The same of the previous stack.
    last: Vec<u8>,
    /// The stacks that the last one extends, outermost first, and the last one itself.
    stacks: Vec<u32>,
    /// Location ids that the last stack does not share.
    ids: Vec<u64>,
}

impl LastStack {
    /// Starts another stack.
    fn clear(&mut self) {
        self.packed.clear();
    }

    /// Adds the one or more ids in a field.
    fn push(&mut self, field: &Field<'_>) -> Result<(), DecodeError> {
        match field.payload {
            Payload::Bytes(bytes) if bytes.last().is_some_and(|&byte| !is_last(byte)) => {
                return Err(field.error("location ids", "the last one is cut off"));
            }
            Payload::Bytes(bytes) => self.packed.extend_from_slice(bytes),
            _ => encode_varint(field.number("location id")? as u64, &mut self.packed),
        }
        Ok(())
    }

    /// The stack that was read. `extend` extends a stack by one frame.
    fn find(
        &mut self,
        mut extend: impl FnMut(u32, u64) -> Result<u32, DecodeError>,
        interrupt: &Interrupt,
    ) -> Result<u32, DecodeError> {
        if self.packed == self.last {
            return Ok(self.stack());
        }
        let (mut inner, outer) = self.packed.split_at(self.packed.len() - shared(&self.packed, &self.last));
        self.stacks.truncate(outer.iter().filter(|&&byte| is_last(byte)).count());
        self.ids.clear();
        while !inner.is_empty() {
            interrupt.at(self.ids.len() + 1)?;
            let id = varint(&mut inner);
            self.ids.push(id.ok_or_else(|| DecodeError::Invalid("has an invalid location id".into()))?);
        }
        let mut stack = self.stack();
        for (step, &id) in (1..).zip(self.ids.iter().rev()) {
            interrupt.at(step)?;
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

/// Whether a byte is the last one of a number.
#[inline]
fn is_last(byte: u8) -> bool {
    byte < 0x80
}

/// How many bytes at the end of both encode the same numbers.
fn shared(a: &[u8], b: &[u8]) -> usize {
    let chunks = 8 * a.rchunks_exact(8).zip(b.rchunks_exact(8)).take_while(|(a, b)| a == b).count();
    let bytes = a.iter().rev().zip(b.iter().rev()).skip(chunks).take_while(|(a, b)| a == b).count();
    let equal = chunks + bytes;
    let starts_number = |bytes: &[u8]| bytes.len() == equal || is_last(bytes[bytes.len() - equal - 1]);
    if starts_number(a) && starts_number(b) {
        return equal;
    }
    // The first number is only partly equal.
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
        // 300 and 200 are [0xac, 2] and [0xc8, 1]; 258 is [0x82, 2], which ends like 300.
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
