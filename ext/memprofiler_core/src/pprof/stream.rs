//! Writes a profile field by field, for those who have no memory to build one: the caller numbers everything.

use super::field_writer::FieldWriter;
use super::message::{self, field};
use std::io::{self, Write};

/// The fastest that still shrinks a profile to a tenth.
const GZIP_LEVEL: u32 = 1;

/// What is compressed at a time, and room for a message on top.
const RESERVED: usize = 128 << 10;

/// A profile on its way to `W`, gzipped. Ids are not 0, strings are numbered in the order in which they are written,
/// and the first one is empty. The order of everything else does not matter. Memory is taken in the beginning, and
/// later only for a stack of more frames than all others.
pub struct Stream<W: Write> {
    fields: FieldWriter<W>,
    sample: message::Sample,
}

/// What stands for itself at the end of a profile. Texts are numbers of strings.
#[derive(Debug, Clone, Copy)]
pub struct Footer {
    /// When it was taken, in nanoseconds since 1970.
    pub time_nanos: i64,
    /// The name and the unit of the period.
    pub period_type: [i64; 2],
    /// Events per sample.
    pub period: i64,
    /// The type that a viewer shows first.
    pub default_sample_type: i64,
}

impl<W: Write> Stream<W> {
    /// A profile with nothing in it.
    pub fn new(out: W) -> Self {
        let sample = message::Sample {
            location_id: Vec::with_capacity(1024),
            value: Vec::with_capacity(4),
            label: Vec::with_capacity(32),
        };
        Self { fields: FieldWriter::to(out, GZIP_LEVEL, RESERVED), sample }
    }

    /// The next column, by the numbers of its name and unit.
    pub fn sample_type(&mut self, [name, unit]: [i64; 2]) -> io::Result<()> {
        self.fields.message(field::SAMPLE_TYPE, &message::ValueType { r#type: name, unit })
    }

    /// A sample: its locations, innermost first, a value per column, labels that are pairs of strings, and one that is
    /// a number.
    pub fn sample(
        &mut self,
        locations: impl Iterator<Item = u64>,
        values: [i64; 4],
        labels: impl Iterator<Item = [i64; 2]>,
        number: Option<(i64, i64)>,
    ) -> io::Result<()> {
        let message::Sample { location_id, value, label } = &mut self.sample;
        location_id.clear();
        location_id.extend(locations);
        value.clear();
        value.extend(values);
        label.clear();
        label.extend(labels.map(|[key, str]| message::Label { key, str, ..message::Label::default() }));
        label.extend(number.map(|(key, num)| message::Label { key, num, ..message::Label::default() }));
        self.fields.message(field::SAMPLE, &self.sample)
    }

    /// The only mapping, with the number 1, by the number of its name.
    pub fn mapping(&mut self, filename: i64) -> io::Result<()> {
        let message = message::Mapping {
            id: 1,
            filename,
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            ..message::Mapping::default()
        };
        self.fields.message(field::MAPPING, &message)
    }

    /// A line of a function.
    pub fn location(&mut self, id: u64, function_id: u64, line: u32) -> io::Result<()> {
        let line = vec![message::Line { function_id, line: line.into(), column: 0 }];
        self.fields.message(field::LOCATION, &message::Location { id, mapping_id: 1, line, ..Default::default() })
    }

    /// A function, with the numbers of its name and file.
    pub fn function(&mut self, id: u64, [name, filename]: [i64; 2], start_line: u32) -> io::Result<()> {
        let start_line = start_line.into();
        self.fields.message(field::FUNCTION, &message::Function { id, name, filename, start_line, system_name: 0 })
    }

    /// The next string.
    pub fn string(&mut self, text: &str) -> io::Result<()> {
        self.fields.bytes(field::STRING_TABLE, text.as_bytes())
    }

    /// A comment.
    pub fn comment(&mut self, text: i64) -> io::Result<()> {
        self.fields.number(field::COMMENT, text)
    }

    /// The rest; returns where it went.
    pub fn finish(mut self, footer: Footer) -> io::Result<W> {
        let [name, unit] = footer.period_type;
        self.fields.number(field::TIME_NANOS, footer.time_nanos)?;
        self.fields.message(field::PERIOD_TYPE, &message::ValueType { r#type: name, unit })?;
        self.fields.number(field::PERIOD, footer.period)?;
        self.fields.number(field::DEFAULT_SAMPLE_TYPE, footer.default_sample_type)?;
        self.fields.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::pprof::{GREATEST_LIMIT, decode, windows_key};
    use crate::window_group::{WindowGroup, pack};

    #[test]
    fn what_is_written_can_be_read() {
        let mut stream = Stream::new(Vec::new());
        stream.sample_type([1, 2]).unwrap();
        stream.sample_type([1, 2]).unwrap();
        stream.sample_type([1, 2]).unwrap();
        stream.sample_type([3, 2]).unwrap();
        stream.sample([7, 5].into_iter(), [1, 2, 3, 4], [[4, 5]].into_iter(), None).unwrap();
        stream.mapping(0).unwrap();
        stream.location(5, 1, 10).unwrap();
        stream.location(7, 2, 20).unwrap();
        // Nobody refers to this one.
        stream.location(6, 2, 30).unwrap();
        stream.function(2, [6, 7], 15).unwrap();
        stream.function(1, [8, 7], 0).unwrap();
        ["", "a", "count", "b", "key", "value", "inner", "file", "outer", "comment"]
            .iter()
            .for_each(|text| stream.string(text).unwrap());
        stream.comment(9).unwrap();
        let footer = Footer { time_nanos: 12, period_type: [1, 2], period: 100, default_sample_type: 3 };
        let bytes = stream.finish(footer).unwrap();
        let profile = decode(&bytes, GREATEST_LIMIT, &Interrupt::default()).unwrap();
        let header = profile.header();
        assert_eq!((header.time_nanos, header.period, &*header.default_sample_type), (12, 100, "b"));
        assert_eq!(header.comments.iter().map(|text| &**text).collect::<Vec<_>>(), ["comment"]);
        let tables = profile.tables();
        let lines: Vec<_> = profile
            .locations(profile.rows()[0].stack)
            .map(|location| {
                let line = tables.locations[location as usize].lines[0];
                let name = tables.functions[line.function as usize].name;
                (tables.strings[name as usize].to_string(), line.line)
            })
            .collect();
        assert_eq!(lines, [("inner".to_owned(), 20), ("outer".to_owned(), 10)]);
    }

    #[test]
    fn what_was_sampled_in_windows_is_read_by_group() {
        let mut parts = [0.0; WindowGroup::COUNT];
        (parts[3], parts[15]) = (30.0, 10.0);
        let mut stream = Stream::new(Vec::new());
        [[1, 5], [2, 6], [3, 5], [4, 6]].into_iter().try_for_each(|column| stream.sample_type(column)).unwrap();
        stream.sample([].into_iter(), [0, 0, 40, 400], [].into_iter(), Some((7, pack(&parts)))).unwrap();
        let texts = ["", "a", "b", "c", "d", "count", "bytes", &windows_key("c"), "greatest_weight=10"];
        texts.iter().for_each(|text| stream.string(text).unwrap());
        stream.comment(8).unwrap();
        let footer = Footer { time_nanos: 1, period_type: [1, 5], period: 10, default_sample_type: 4 };
        let bytes = stream.finish(footer).unwrap();
        let profile = decode(&bytes, GREATEST_LIMIT, &Interrupt::default()).unwrap();
        let of_groups: Vec<_> = (0..profile.rows().len())
            .map(|row| (profile.scheme(row).window.map(WindowGroup::number), profile.values(row)[2..].to_vec()))
            .collect();
        assert_eq!(of_groups, [(Some(3), vec![30, 300]), (Some(15), vec![10, 100])]);
    }
}
