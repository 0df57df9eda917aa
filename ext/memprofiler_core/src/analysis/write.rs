//! Writes a profile as pprof.

use super::profile::Profile;
use super::records::{Label, LabelValue, Mapping, Sample, ValueType};
use super::translation::Used;
use crate::field_writer::FieldWriter;
use crate::hash::SecretState;
use crate::pprof_message::{self as wire, field};
use crate::table::Table;
use std::io;
use std::sync::Arc;

/// The gzipped bytes of `profile`, `level` being gzip's, 0 to 9. Equal profiles made in the same way give equal bytes. Of
/// the tables what no sample refers to is left out, but for mappings.
pub fn write(profile: &Profile, level: u32) -> io::Result<Vec<u8>> {
    let mut writer = Writer {
        profile,
        fields: FieldWriter::new(level),
        strings: Table::default(),
        functions: Table::default(),
        locations: Table::default(),
    };
    writer.strings.id(&Arc::from(""));
    writer.write()?;
    writer.fields.finish()
}

struct Writer<'a> {
    profile: &'a Profile,
    fields: FieldWriter,
    strings: Table<Arc<str>, SecretState>,
    /// What was referred to so far; ids are one more than the numbers here.
    functions: Table<u32, SecretState>,
    locations: Table<u32, SecretState>,
}

impl Writer<'_> {
    fn write(&mut self) -> io::Result<()> {
        let profile = self.profile;
        for value_type in &profile.header().sample_types {
            let value_type = self.value_type(value_type);
            self.fields.message(field::SAMPLE_TYPE, &value_type)?;
        }
        let label_sets = self.label_sets();
        let mut location_id = Vec::new();
        for Sample { stack, labels, values } in profile.samples() {
            location_id.clear();
            location_id.extend(profile.locations(stack).map(|location| u64::from(self.locations.id(&location)) + 1));
            let label = label_sets[labels as usize].clone();
            let sample = wire::Sample { location_id: std::mem::take(&mut location_id), value: values, label };
            self.fields.message(field::SAMPLE, &sample)?;
            location_id = sample.location_id;
        }
        for (id, mapping) in (1..).zip(&profile.tables().mappings) {
            let mapping = self.mapping(id, *mapping);
            self.fields.message(field::MAPPING, &mapping)?;
        }
        self.locations()?;
        self.functions()?;
        self.header()
    }

    fn locations(&mut self) -> io::Result<()> {
        let locations = std::mem::take(&mut self.locations).into_values();
        for (id, number) in (1..).zip(locations) {
            let location = &self.profile.tables().locations[number as usize];
            let lines = location.lines.iter().map(|line| wire::Line {
                function_id: u64::from(self.functions.id(&line.function)) + 1,
                line: line.line,
                column: line.column,
            });
            let location = wire::Location {
                id,
                mapping_id: location.mapping.map_or(0, |mapping| u64::from(mapping) + 1),
                address: location.address,
                line: lines.collect(),
                is_folded: location.folded,
            };
            self.fields.message(field::LOCATION, &location)?;
        }
        Ok(())
    }

    fn functions(&mut self) -> io::Result<()> {
        let functions = std::mem::take(&mut self.functions).into_values();
        for (id, number) in (1..).zip(functions) {
            let function = self.profile.tables().functions[number as usize];
            let [name, system_name, filename] =
                [function.name, function.system_name, function.file].map(|string| self.string(string));
            let start_line = function.start_line;
            self.fields.message(field::FUNCTION, &wire::Function { id, name, system_name, filename, start_line })?;
        }
        Ok(())
    }

    /// Comes last: by now all strings are known.
    fn header(&mut self) -> io::Result<()> {
        let header = self.profile.header();
        let mut text = |text: &Arc<str>| i64::from(self.strings.id(text));
        let comments: Vec<i64> = header.comments.iter().map(&mut text).collect();
        let numbers = [
            (field::DROP_FRAMES, text(&header.drop_frames)),
            (field::KEEP_FRAMES, text(&header.keep_frames)),
            (field::TIME_NANOS, header.time_nanos),
            (field::DURATION_NANOS, header.duration_nanos),
            (field::PERIOD, header.period),
            (field::DEFAULT_SAMPLE_TYPE, text(&header.default_sample_type)),
            (field::DOC_URL, text(&header.doc_url)),
        ];
        let period_type = header.period_type.as_ref().map(|period_type| self.value_type(period_type));
        for string in self.strings.values() {
            self.fields.bytes(field::STRING_TABLE, string.as_bytes())?;
        }
        for (number, value) in numbers.into_iter().filter(|&(_, value)| value != 0) {
            self.fields.number(number, value)?;
        }
        if let Some(period_type) = period_type {
            self.fields.message(field::PERIOD_TYPE, &period_type)?;
        }
        comments.into_iter().try_for_each(|comment| self.fields.number(field::COMMENT, comment))
    }

    fn label_sets(&mut self) -> Vec<Vec<wire::Label>> {
        let profile = self.profile;
        let used = Used::of(profile).label_sets;
        let sets = profile.tables().label_sets.iter().zip(used);
        sets.map(|(set, used)| if used { set.iter().map(|&label| self.label(label)).collect() } else { Vec::new() })
            .collect()
    }

    fn label(&mut self, label: Label) -> wire::Label {
        let key = self.string(label.key);
        match label.value {
            LabelValue::Text(text) => wire::Label { key, str: self.string(text), num: 0, num_unit: 0 },
            LabelValue::Number(num, unit) => wire::Label { key, str: 0, num, num_unit: self.string(unit) },
        }
    }

    fn mapping(&mut self, id: u64, mapping: Mapping) -> wire::Mapping {
        let [has_functions, has_filenames, has_line_numbers, has_inline_frames] = mapping.has;
        wire::Mapping {
            id,
            memory_start: mapping.start,
            memory_limit: mapping.limit,
            file_offset: mapping.offset,
            filename: self.string(mapping.file),
            build_id: self.string(mapping.build_id),
            has_functions,
            has_filenames,
            has_line_numbers,
            has_inline_frames,
        }
    }

    fn value_type(&mut self, value_type: &ValueType) -> wire::ValueType {
        let mut text = |text: &Arc<str>| i64::from(self.strings.id(text));
        wire::ValueType { r#type: text(&value_type.name), unit: text(&value_type.unit) }
    }

    fn string(&mut self, number: u32) -> i64 {
        i64::from(self.strings.id(&self.profile.tables().strings[number as usize]))
    }
}
