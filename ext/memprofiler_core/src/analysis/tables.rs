//! Reads the tables of a profile: all but its samples.

use super::builder::Builder;
use super::decode::DecodeError;
use super::outermost::Outermost;
use super::records::{Function, Header, Line, Location, Mapping, ValueType};
use super::strings::Strings;
use crate::pprof_message as wire;
use std::sync::Arc;

/// Puts what a message says into a builder.
pub struct TableReader<'a> {
    /// Where from.
    pub message: &'a Outermost<'a>,
    /// Its strings, which the builder has already.
    pub strings: &'a Strings,
    /// Where to.
    pub builder: &'a mut Builder,
}

impl TableReader<'_> {
    /// What the profile says about itself.
    pub fn header(&self) -> Result<Header, DecodeError> {
        let message = self.message;
        let types = message.sample_types.iter().enumerate();
        let comments = message.comments.iter();
        Ok(Header {
            sample_types: types
                .map(|(index, &each)| self.value_type(each, &format!("sample type {index}")))
                .collect::<Result<_, _>>()?,
            default_sample_type: self.text(message.default_sample_type, "default_sample_type")?,
            time_nanos: message.time_nanos,
            duration_nanos: message.duration_nanos,
            period_type: message.period_type.map(|each| self.value_type(each, "period_type")).transpose()?,
            period: message.period,
            comments: comments.map(|&index| self.text(index, "comment")).collect::<Result<_, _>>()?,
            drop_frames: self.text(message.drop_frames, "drop_frames")?,
            keep_frames: self.text(message.keep_frames, "keep_frames")?,
            doc_url: self.text(message.doc_url, "doc_url")?,
        })
    }

    fn value_type(&self, value_type: wire::ValueType, place: &str) -> Result<ValueType, DecodeError> {
        Ok(ValueType { name: self.text(value_type.r#type, place)?, unit: self.text(value_type.unit, place)? })
    }

    fn text(&self, index: i64, place: &str) -> Result<Arc<str>, DecodeError> {
        Ok(self.builder.text(self.strings.get(index, || place.to_owned())?))
    }

    /// The number in the builder of each location.
    pub fn locations(&mut self) -> Result<Vec<u32>, DecodeError> {
        let (mappings, functions) = (self.mappings()?, self.functions()?);
        let mut locations = Vec::with_capacity(self.message.locations.len());
        for location in &self.message.locations {
            let missing = |what, id| {
                DecodeError::new(
                    format_args!("location {}", location.id),
                    format_args!("refers to {what} {id}, which is not in the profile"),
                )
            };
            let mapping = match location.mapping_id {
                0 => None,
                id => Some(mappings[self.message.mapping_ids.get(id).ok_or_else(|| missing("mapping", id))? as usize]),
            };
            let lines = location.line.iter().map(|line| {
                let id = line.function_id;
                let index = self.message.function_ids.get(id).ok_or_else(|| missing("function", id))?;
                Ok(Line { function: functions[index as usize], line: line.line, column: line.column })
            });
            let lines = lines.collect::<Result<_, _>>()?;
            let location = Location { mapping, address: location.address, folded: location.is_folded, lines };
            locations.push(self.builder.location(&location));
        }
        Ok(locations)
    }

    fn mappings(&mut self) -> Result<Vec<u32>, DecodeError> {
        let mut mappings = Vec::with_capacity(self.message.mappings.len());
        for mapping in &self.message.mappings {
            let string = |index| self.strings.get(index, || format!("mapping {}", mapping.id));
            let (file, build_id) = (string(mapping.filename)?, string(mapping.build_id)?);
            mappings.push(self.builder.mapping(Mapping {
                start: mapping.memory_start,
                limit: mapping.memory_limit,
                offset: mapping.file_offset,
                file,
                build_id,
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

    fn functions(&mut self) -> Result<Vec<u32>, DecodeError> {
        let mut functions = Vec::with_capacity(self.message.functions.len());
        for function in &self.message.functions {
            let string = |index| self.strings.get(index, || format!("function {}", function.id));
            let (name, system_name) = (string(function.name)?, string(function.system_name)?);
            let (file, start_line) = (string(function.filename)?, function.start_line);
            functions.push(self.builder.function(Function { name, system_name, file, start_line }));
        }
        Ok(functions)
    }
}
