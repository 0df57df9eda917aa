//! Reads the tables of a profile: everything but its samples, which can precede what they refer to.

use super::DecodeError;
use super::message::{self, field};
use super::wire::{Field, fields};
use crate::hash::SecretState;
use crate::interrupt::Interrupt;
use crate::profile::{Builder, Function, Header, Line, Location, Mapping, ValueType};
use std::collections::HashMap;
use std::sync::Arc;

/// Limited because some output formats list each sample once per type.
const MOST_SAMPLE_TYPES: usize = 64;
/// Those of more than 20,000 merged profiles. In a file a comment may take one byte only.
const MOST_COMMENTS: usize = 1 << 20;

/// The tables as they are encoded.
#[derive(Default)]
pub struct RawTables<'a> {
    sample_types: Vec<message::ValueType>,
    mappings: Entries<message::Mapping>,
    locations: Entries<message::Location>,
    functions: Entries<message::Function>,
    strings: Vec<&'a [u8]>,
    drop_frames: i64,
    keep_frames: i64,
    time_nanos: i64,
    duration_nanos: i64,
    period_type: Option<message::ValueType>,
    period: i64,
    comments: Vec<i64>,
    default_sample_type: i64,
    doc_url: i64,
}

impl<'a> RawTables<'a> {
    /// Reads them. Rejects ids that are 0 or used twice.
    pub fn read(plain: &'a [u8], interrupt: &Interrupt) -> Result<Self, DecodeError> {
        let mut tables = Self::default();
        for (step, field) in fields(plain).enumerate() {
            interrupt.at(step)?;
            tables.field(&field?, interrupt)?;
        }
        for (what, count, most) in [
            ("sample types", tables.sample_types.len(), MOST_SAMPLE_TYPES),
            ("comments", tables.comments.len(), MOST_COMMENTS),
        ] {
            if count > most {
                return Err(DecodeError::new(what, format_args!("there are {count}, at most {most} are allowed")));
            }
        }
        Ok(tables)
    }

    fn field(&mut self, field: &Field<'a>, interrupt: &Interrupt) -> Result<(), DecodeError> {
        match field.number {
            field::SAMPLE_TYPE => self.sample_types.push(field.message("sample type", self.sample_types.len())?),
            field::MAPPING => self.mappings.push("mapping", field, |mapping| mapping.id)?,
            field::LOCATION => self.locations.push("location", field, |location| location.id)?,
            field::FUNCTION => self.functions.push("function", field, |function| function.id)?,
            field::STRING_TABLE => self.strings.push(field.bytes("string")?),
            field::DROP_FRAMES => self.drop_frames = field.number("drop_frames")?,
            field::KEEP_FRAMES => self.keep_frames = field.number("keep_frames")?,
            field::TIME_NANOS => self.time_nanos = field.number("time_nanos")?,
            field::DURATION_NANOS => self.duration_nanos = field.number("duration_nanos")?,
            field::PERIOD_TYPE => self.period_type = Some(field.message("period_type", 0)?),
            field::PERIOD => self.period = field.number("period")?,
            field::COMMENT => field.numbers("comment", &mut self.comments, interrupt)?,
            field::DEFAULT_SAMPLE_TYPE => self.default_sample_type = field.number("default_sample_type")?,
            field::DOC_URL => self.doc_url = field.number("doc_url")?,
            _ => {}
        }
        Ok(())
    }
}

/// The entries of a table, and the position of each id. Most writers number them 1, 2, 3 …, which takes no memory.
struct Entries<M> {
    messages: Vec<M>,
    /// How many of the first ids are in sequence.
    in_order: usize,
    others: HashMap<u64, usize, SecretState>,
}

impl<M> Default for Entries<M> {
    fn default() -> Self {
        Self { messages: Vec::new(), in_order: 0, others: HashMap::default() }
    }
}

impl<M: prost::Message + Default> Entries<M> {
    fn push(&mut self, what: &str, field: &Field<'_>, id: impl Fn(&M) -> u64) -> Result<(), DecodeError> {
        let position = self.messages.len();
        let message: M = field.message(what, position)?;
        let id = id(&message);
        if id == 0 || self.position(id).is_some() {
            let reason = if id == 0 { "has no id".into() } else { format!("id {id} is used twice") };
            return Err(field.error(&format!("{what} {position}"), reason));
        }
        if position == self.in_order && id == position as u64 + 1 {
            self.in_order += 1;
        } else {
            self.others.insert(id, position);
        }
        self.messages.push(message);
        Ok(())
    }

    #[inline]
    fn position(&self, id: u64) -> Option<usize> {
        if id.wrapping_sub(1) < self.in_order as u64 { Some(id as usize - 1) } else { self.others.get(&id).copied() }
    }
}

/// Maps what samples refer to to the builder's numbers.
pub struct References<'a> {
    tables: &'a RawTables<'a>,
    strings: Vec<u32>,
    locations: Vec<u32>,
}

impl<'a> References<'a> {
    /// Adds what the tables hold to a builder.
    pub fn new(tables: &'a RawTables<'a>, builder: &mut Builder, interrupt: &Interrupt) -> Result<Self, DecodeError> {
        let strings = strings(&tables.strings, builder, interrupt)?;
        let mut references = Self { tables, strings, locations: Vec::new() };
        references.locations = references.read_locations(builder, interrupt)?;
        Ok(references)
    }

    /// The builder's number of string `index`, to which `place` refers.
    #[inline]
    pub fn string(&self, index: i64, place: impl FnOnce() -> String) -> Result<u32, DecodeError> {
        let number = usize::try_from(index).ok().and_then(|index| self.strings.get(index)).copied();
        number.ok_or_else(|| {
            let reason = format!("refers to string {index}, but there are only {}", self.strings.len());
            DecodeError::new(place(), reason)
        })
    }

    /// The builder's number of the location with that id.
    #[inline]
    pub fn location(&self, id: u64) -> Result<u32, DecodeError> {
        let missing = || DecodeError::Invalid(format!("refers to location {id}, which is not in the profile"));
        Ok(self.locations[self.tables.locations.position(id).ok_or_else(missing)?])
    }

    /// What the profile says about itself.
    pub fn header(&self, builder: &Builder, interrupt: &Interrupt) -> Result<Header, DecodeError> {
        let text = |index, place: &str| Ok::<_, DecodeError>(builder.text(self.string(index, || place.to_owned())?));
        let value_type = |value_type: &message::ValueType, place: &str| {
            Ok::<_, DecodeError>(ValueType {
                name: text(value_type.r#type, place)?,
                unit: text(value_type.unit, place)?,
            })
        };
        let tables = self.tables;
        let types = tables.sample_types.iter().enumerate();
        let mut comments = Vec::with_capacity(tables.comments.len());
        for (number, &index) in tables.comments.iter().enumerate() {
            interrupt.at(number)?;
            comments.push(text(index, "comment")?);
        }
        Ok(Header {
            sample_types: types
                .map(|(index, each)| value_type(each, &format!("sample type {index}")))
                .collect::<Result<_, _>>()?,
            default_sample_type: text(tables.default_sample_type, "default_sample_type")?,
            time_nanos: tables.time_nanos,
            duration_nanos: tables.duration_nanos,
            period_type: tables.period_type.map(|each| value_type(&each, "period_type")).transpose()?,
            period: tables.period,
            comments,
            drop_frames: text(tables.drop_frames, "drop_frames")?,
            keep_frames: text(tables.keep_frames, "keep_frames")?,
            doc_url: text(tables.doc_url, "doc_url")?,
        })
    }

    fn read_locations(&self, builder: &mut Builder, interrupt: &Interrupt) -> Result<Vec<u32>, DecodeError> {
        let (mappings, functions) = (self.read_mappings(builder, interrupt)?, self.read_functions(builder, interrupt)?);
        let mut locations = Vec::with_capacity(self.tables.locations.messages.len());
        for (number, location) in self.tables.locations.messages.iter().enumerate() {
            interrupt.at(number)?;
            let missing = |what, id| {
                let reason = format_args!("refers to {what} {id}, which is not in the profile");
                DecodeError::new(format_args!("location {}", location.id), reason)
            };
            let mapping = match location.mapping_id {
                0 => None,
                id => Some(mappings[self.tables.mappings.position(id).ok_or_else(|| missing("mapping", id))?]),
            };
            let lines = location.line.iter().map(|&message::Line { function_id: id, line, column }| {
                let position = self.tables.functions.position(id).ok_or_else(|| missing("function", id))?;
                Ok(Line { function: functions[position], line, column })
            });
            let lines = lines.collect::<Result<_, DecodeError>>()?;
            let location = Location { mapping, address: location.address, folded: location.is_folded, lines };
            locations.push(builder.location(&location));
        }
        Ok(locations)
    }

    fn read_mappings(&self, builder: &mut Builder, interrupt: &Interrupt) -> Result<Vec<u32>, DecodeError> {
        let mut mappings = Vec::with_capacity(self.tables.mappings.messages.len());
        for (number, mapping) in self.tables.mappings.messages.iter().enumerate() {
            interrupt.at(number)?;
            let string = |index| self.string(index, || format!("mapping {}", mapping.id));
            mappings.push(builder.mapping(Mapping {
                start: mapping.memory_start,
                limit: mapping.memory_limit,
                offset: mapping.file_offset,
                file: string(mapping.filename)?,
                build_id: string(mapping.build_id)?,
                has: [
                    mapping.has_functions,
                    mapping.has_filenames,
                    mapping.has_line_numbers,
                    mapping.has_inline_frames,
                ],
            }));
        }
        Ok(mappings)
    }

    fn read_functions(&self, builder: &mut Builder, interrupt: &Interrupt) -> Result<Vec<u32>, DecodeError> {
        let mut functions = Vec::with_capacity(self.tables.functions.messages.len());
        for (number, function) in self.tables.functions.messages.iter().enumerate() {
            interrupt.at(number)?;
            let string = |index| self.string(index, || format!("function {}", function.id));
            functions.push(builder.function(Function {
                name: string(function.name)?,
                system_name: string(function.system_name)?,
                file: string(function.filename)?,
                start_line: function.start_line,
            }));
        }
        Ok(functions)
    }
}

/// The builder's number of each string.
fn strings(table: &[&[u8]], builder: &mut Builder, interrupt: &Interrupt) -> Result<Vec<u32>, DecodeError> {
    if table.first().is_none_or(|first| !first.is_empty()) {
        return Err(DecodeError::new("string table", "the first entry must exist and be empty"));
    }
    let mut numbers = Vec::with_capacity(table.len());
    for (number, bytes) in table.iter().enumerate() {
        interrupt.at(number)?;
        let text = String::from_utf8_lossy(bytes);
        numbers.push(builder.string_or(&text, || Arc::from(&*text)));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    #[test]
    fn any_number_can_be_an_id_except_0_and_duplicates() {
        let mut entries = Entries::<message::Function>::default();
        let accepted = [1, 2, 0, 2, 9, 3, u64::MAX, 9, 7].map(|id| {
            let message = message::Function { id, ..Default::default() };
            let mut bytes = vec![5 << 3 | 2];
            message.encode_length_delimited(&mut bytes).unwrap();
            entries.push("function", &fields(&bytes).next().unwrap().unwrap(), |function| function.id).is_ok()
        });
        assert_eq!(accepted, [true, true, false, false, true, true, true, false, true]);
        assert_eq!([1, 2, 9, 3, u64::MAX, 7].map(|id| entries.position(id)), [0, 1, 2, 3, 4, 5].map(Some));
        assert_eq!([0, 4, 8].map(|id| entries.position(id)), [None; 3]);
    }
}
