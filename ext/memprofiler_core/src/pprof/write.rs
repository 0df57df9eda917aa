//! Writes a profile as pprof.

use super::field_writer::FieldWriter;
use super::message::{self, field};
use super::selection::Selection;
use super::windows::WindowsWriter;
use crate::interrupt::Interrupt;
use crate::profile::{Header, Label, LabelValue, Location, Mapping, Profile, ValueType};
use crate::table::Table;
use std::io;
use std::sync::Arc;

/// `profile` as gzipped bytes; `level` is gzip's, 0 to 9. Equal profiles built in the same way give equal bytes. Table
/// entries that no sample refers to are left out, except mappings.
pub fn write(profile: &Profile, level: u32, interrupt: &Interrupt) -> io::Result<Vec<u8>> {
    let selection = Selection::used(profile, interrupt).map_err(io::Error::other)?;
    Writer::new(profile, &selection, level, interrupt).write()
}

/// The same with complete tables: for a profile that was just built, whose tables contain nothing else.
pub fn write_whole(profile: &Profile, level: u32) -> io::Result<Vec<u8>> {
    Writer::new(profile, &Selection::all(profile), level, &Interrupt::default()).write()
}

/// New ids 1, 2, 3 … for the entries that are written, 0 for the others.
fn ids(entries: &[bool]) -> Vec<u64> {
    let mut last = 0;
    entries
        .iter()
        .map(|&is_written| {
            last += u64::from(is_written);
            if is_written { last } else { 0 }
        })
        .collect()
}

struct Writer<'a> {
    profile: &'a Profile,
    interrupt: &'a Interrupt,
    fields: FieldWriter,
    locations: Vec<u64>,
    functions: Vec<u64>,
    /// The index of each string in the table that is written.
    strings: Vec<i64>,
    written_strings: Table<Arc<str>>,
}

impl<'a> Writer<'a> {
    fn new(profile: &'a Profile, selection: &Selection, level: u32, interrupt: &'a Interrupt) -> Self {
        let mut written_strings = Table::default();
        let strings = profile.tables().strings.iter().zip(&selection.strings);
        let strings = strings
            .map(|(text, &is_written)| if is_written { i64::from(written_strings.id(text)) } else { 0 })
            .collect();
        let (locations, functions) = (ids(&selection.locations), ids(&selection.functions));
        Self { profile, interrupt, fields: FieldWriter::new(level), locations, functions, strings, written_strings }
    }

    /// Checks for an interrupt at step `step` of a loop.
    fn check_interrupt(&self, step: usize) -> io::Result<()> {
        // An error of kind Interrupted would mean: try again.
        self.interrupt.at(step).map_err(io::Error::other)
    }

    fn write(mut self) -> io::Result<Vec<u8>> {
        let (header, tables) = (self.profile.header(), self.profile.tables());
        for value_type in &header.sample_types {
            let value_type = self.value_type(value_type);
            self.fields.message(field::SAMPLE_TYPE, &value_type)?;
        }
        self.samples()?;
        for (id, mapping) in (1..).zip(&tables.mappings) {
            let mapping = self.mapping(id, mapping);
            self.fields.message(field::MAPPING, &mapping)?;
        }
        for (number, location) in tables.locations.iter().enumerate().filter(|&(number, _)| self.locations[number] > 0)
        {
            self.check_interrupt(number)?;
            let location = self.location(self.locations[number], location);
            self.fields.message(field::LOCATION, &location)?;
        }
        for (number, function) in tables.functions.iter().enumerate().filter(|&(number, _)| self.functions[number] > 0)
        {
            self.check_interrupt(number)?;
            let [name, system_name, filename] =
                [function.name, function.system_name, function.file].map(|string| self.strings[string as usize]);
            let (id, start_line) = (self.functions[number], function.start_line);
            self.fields.message(field::FUNCTION, &message::Function { id, name, system_name, filename, start_line })?;
        }
        self.strings_and_header(header)?;
        self.fields.finish()
    }

    fn samples(&mut self) -> io::Result<()> {
        let profile = self.profile;
        let windows = WindowsWriter::new(profile);
        let mut message = message::Sample::default();
        for (number, rows) in profile.rows_of_samples().enumerate() {
            self.check_interrupt(number)?;
            let row = profile.rows()[rows.start];
            message.location_id.clear();
            for (step, location) in (1..).zip(profile.locations(row.stack)) {
                self.check_interrupt(step)?;
                message.location_id.push(self.locations[location as usize]);
            }
            let labels = &profile.tables().label_sets[row.labels as usize];
            for (step, part) in (1..).zip(windows.parts(rows)) {
                self.check_interrupt(step)?;
                message.label.clear();
                message.label.extend(labels.iter().map(|label| self.label(label)));
                for (key, num) in part.windows {
                    let key = self.extra(key);
                    message.label.push(message::Label { key, num, ..Default::default() });
                }
                if part.is_base {
                    let (key, value) = message::BASE_LABEL;
                    let (key, str) = (self.extra(key), self.extra(value));
                    message.label.push(message::Label { key, str, ..Default::default() });
                }
                message.value = part.values;
                self.fields.message(field::SAMPLE, &message)?;
            }
        }
        Ok(())
    }

    /// Comes last: only the header's strings are still missing by now.
    fn strings_and_header(&mut self, header: &Header) -> io::Result<()> {
        let period_type = header.period_type.as_ref().map(|period_type| self.value_type(period_type));
        let comments: Vec<i64> = header.comments.iter().map(|comment| self.text(comment)).collect();
        let default_sample_type = self.text(&header.default_sample_type);
        let [drop_frames, keep_frames, doc_url] =
            [&header.drop_frames, &header.keep_frames, &header.doc_url].map(|text| self.text(text));
        let strings = std::mem::take(&mut self.written_strings).into_values();
        for (step, string) in strings.iter().enumerate() {
            self.check_interrupt(step)?;
            self.fields.bytes(field::STRING_TABLE, string.as_bytes())?;
        }
        self.fields.number(field::TIME_NANOS, header.time_nanos)?;
        self.fields.number(field::DURATION_NANOS, header.duration_nanos)?;
        if let Some(period_type) = period_type {
            self.fields.message(field::PERIOD_TYPE, &period_type)?;
        }
        self.fields.number(field::PERIOD, header.period)?;
        comments.into_iter().try_for_each(|comment| self.fields.number(field::COMMENT, comment))?;
        self.fields.number(field::DEFAULT_SAMPLE_TYPE, default_sample_type)?;
        [(field::DROP_FRAMES, drop_frames), (field::KEEP_FRAMES, keep_frames), (field::DOC_URL, doc_url)]
            .into_iter()
            .filter(|&(_, text)| text != 0)
            .try_for_each(|(number, text)| self.fields.number(number, text))
    }

    fn label(&self, label: &Label) -> message::Label {
        let key = self.strings[label.key as usize];
        match label.value {
            LabelValue::Text(text) => message::Label { key, str: self.strings[text as usize], num: 0, num_unit: 0 },
            LabelValue::Number(num, unit) => message::Label { key, str: 0, num, num_unit: self.strings[unit as usize] },
        }
    }

    fn location(&self, id: u64, location: &Location) -> message::Location {
        let lines = location.lines.iter().map(|line| message::Line {
            function_id: self.functions[line.function as usize],
            line: line.line,
            column: line.column,
        });
        message::Location {
            id,
            mapping_id: location.mapping.map_or(0, |mapping| u64::from(mapping) + 1),
            address: location.address,
            line: lines.collect(),
            is_folded: location.folded,
        }
    }

    fn mapping(&self, id: u64, mapping: &Mapping) -> message::Mapping {
        let [has_functions, has_filenames, has_line_numbers, has_inline_frames] = mapping.has;
        message::Mapping {
            id,
            memory_start: mapping.start,
            memory_limit: mapping.limit,
            file_offset: mapping.offset,
            filename: self.strings[mapping.file as usize],
            build_id: self.strings[mapping.build_id as usize],
            has_functions,
            has_filenames,
            has_line_numbers,
            has_inline_frames,
        }
    }

    fn value_type(&mut self, value_type: &ValueType) -> message::ValueType {
        message::ValueType { r#type: self.text(&value_type.name), unit: self.text(&value_type.unit) }
    }

    /// The index of a text that the profile in memory need not have.
    fn extra(&mut self, text: &str) -> i64 {
        self.written_strings.id_or(text, || text.into()).into()
    }

    fn text(&mut self, text: &Arc<str>) -> i64 {
        i64::from(self.written_strings.id(text))
    }
}
