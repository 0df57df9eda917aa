//! Reads the samples of a profile.

use super::builder::Builder;
use super::decode::DecodeError;
use super::ids::Ids;
use super::records::{Label, LabelValue, Row};
use super::stack_reader::StackReader;
use super::strings::Strings;
use super::wire_fields::fields;
use crate::pprof_message::{self as wire, field, sample_field};

/// Where samples find their locations.
pub struct Locations<'a> {
    /// As the profile calls them.
    pub ids: &'a Ids,
    /// For each of the profile's table its number in the builder.
    pub numbers: Vec<u32>,
}

impl Locations<'_> {
    #[inline]
    fn number(&self, id: u64) -> Result<u32, DecodeError> {
        let position = self
            .ids
            .get(id)
            .ok_or_else(|| DecodeError::Invalid(format!("refers to location {id}, which is not in the profile")))?;
        Ok(self.numbers[position as usize])
    }
}

/// Puts samples into rows, and what they refer to into a builder.
pub struct SampleReader<'a> {
    builder: &'a mut Builder,
    strings: &'a Strings,
    locations: &'a Locations<'a>,
    /// How many values a sample has.
    width: usize,
    scheme: u32,
    stack: StackReader,
    labels: Vec<Label>,
    rows: Vec<Row>,
    values: Vec<i64>,
}

impl<'a> SampleReader<'a> {
    /// Reads none yet. The builder has what the tables hold already.
    pub fn new(
        builder: &'a mut Builder,
        strings: &'a Strings,
        locations: &'a Locations<'a>,
        width: usize,
        scheme: u32,
    ) -> Self {
        let (stack, labels, rows, values) = (StackReader::default(), Vec::new(), Vec::new(), Vec::new());
        Self { builder, strings, locations, width, scheme, stack, labels, rows, values }
    }

    /// Reads all samples of a profile.
    pub fn read(&mut self, plain: &[u8]) -> Result<(), DecodeError> {
        let samples = fields(plain).filter(|field| field.as_ref().is_ok_and(|field| field.number == field::SAMPLE));
        for (index, field) in samples.enumerate() {
            let field = field?;
            let bytes = field.bytes("sample")?;
            self.sample(bytes)
                .map_err(|error| error.within(format_args!("sample {index} at byte {}", field.offset)))?;
        }
        Ok(())
    }

    /// One row per sample, though some may be equal, and the values of all.
    pub fn into_rows(self) -> (Vec<Row>, Vec<i64>) {
        (self.rows, self.values)
    }

    fn sample(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let start = self.values.len();
        self.stack.clear();
        self.labels.clear();
        for field in fields(bytes) {
            let field = field?;
            match field.number {
                sample_field::LOCATION_ID => self.stack.push(&field)?,
                sample_field::VALUE => field.numbers("value", &mut self.values)?,
                sample_field::LABEL => {
                    let label = self.label(field.message("label", self.labels.len())?)?;
                    self.labels.push(label);
                }
                _ => {}
            }
        }
        let count = self.values.len() - start;
        if count != self.width {
            return Err(DecodeError::Invalid(format!("has {count} values for {} sample types", self.width)));
        }
        let stack = self.stack.find(|caller, id| Ok(self.builder.extend(caller, self.locations.number(id)?)))?;
        let labels = self.builder.label_set(&mut self.labels);
        self.rows.push(Row { stack, labels, scheme: self.scheme });
        Ok(())
    }

    fn label(&self, label: wire::Label) -> Result<Label, DecodeError> {
        let string = |index| self.strings.get(index, || "label".into());
        // An empty string and the number 0 without a unit are written the same way.
        let value = match string(label.str)? {
            0 => LabelValue::Number(label.num, string(label.num_unit)?),
            text => LabelValue::Text(text),
        };
        Ok(Label { key: string(label.key)?, value })
    }
}
