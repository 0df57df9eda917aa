//! Writes a profile as gzipped pprof.

use crate::field_writer::FieldWriter;
use crate::pprof_message as wire;
use crate::pprof_message::{ValueType, field};
use crate::profile::{Frame, LabelsId, Profile, SampleKey, Stack, StringId, Values};
use std::io;
use std::sync::Arc;

/// The names of the four sample types.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SampleTypeNames {
    /// `allocations`, `allocations_size`, `retained_objects`, `retained_size`.
    #[default]
    Ruby,
    /// `alloc_objects`, `alloc_space`, `inuse_objects`, `inuse_space`, which some servers know from Go.
    Go,
}

impl SampleTypeNames {
    /// Names and units, in the order of [`Values::rounded`]: speedscope opens with the last one.
    fn types(self) -> [(&'static str, &'static str); 4] {
        let names = match self {
            Self::Ruby => ["allocations", "allocations_size", "retained_objects", "retained_size"],
            Self::Go => ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"],
        };
        [(names[0], "count"), (names[1], "bytes"), (names[2], "count"), (names[3], "bytes")]
    }

    /// What one period counts. Parca and Pyroscope build the names of series from Go's `space`/`bytes`.
    fn period_type(self) -> (&'static str, &'static str) {
        match self {
            Self::Ruby => ("allocations", "count"),
            Self::Go => ("space", "bytes"),
        }
    }
}

/// Which of the four values a viewer is to show first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as the values")]
pub enum DefaultType {
    Allocations,
    AllocationsSize,
    RetainedObjects,
    #[default]
    RetainedSize,
}

/// What a profile says about itself as a whole.
#[derive(Debug, Clone)]
pub struct Header {
    /// When the profile was taken, in nanoseconds since 1970.
    pub time_nanos: i64,
    /// How long the interval was in which allocations were counted, in nanoseconds.
    pub duration_nanos: i64,
    /// Allocations per sample.
    pub period: i64,
    /// Names of the sample types.
    pub sample_type_names: SampleTypeNames,
    /// The value to show first.
    pub default_sample_type: DefaultType,
    /// Remarks for the reader.
    pub comments: Vec<String>,
}

/// The gzipped bytes of `profile`. Equal profiles and headers give equal bytes.
pub fn encode(profile: &mut Profile, header: &Header, level: u32) -> io::Result<Vec<u8>> {
    let mut writer = Writer(FieldWriter::new(level));
    writer.write(profile, header)?;
    writer.0.finish()
}

struct Writer(FieldWriter);

impl Writer {
    fn write(&mut self, profile: &mut Profile, header: &Header) -> io::Result<()> {
        let mut string = |text: &str| i64::from(profile.string(&Arc::from(text)).0);
        let mut value_type = |(name, unit): (&str, &str)| ValueType { r#type: string(name), unit: string(unit) };
        let sample_types = header.sample_type_names.types().map(&mut value_type);
        let period_type = value_type(header.sample_type_names.period_type());
        let labels = LabelKeys { class: string("class"), age: string("gc_age"), age_unit: string("collections") };
        let program = string("ruby");
        let comments: Vec<i64> = header.comments.iter().map(|comment| string(comment)).collect();

        for sample_type in &sample_types {
            self.0.message(field::SAMPLE_TYPE, sample_type)?;
        }
        for (key, values) in profile.samples() {
            self.sample(profile, key, values, &labels)?;
        }
        self.0.message(
            field::MAPPING,
            &wire::Mapping {
                id: 1,
                filename: program,
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                ..Default::default()
            },
        )?;
        for (id, location) in (1..).zip(profile.locations.values()) {
            let line =
                wire::Line { function_id: u64::from(location.function) + 1, line: i64::from(location.line), column: 0 };
            self.0.message(
                field::LOCATION,
                &wire::Location { id, mapping_id: 1, line: vec![line], ..Default::default() },
            )?;
        }
        for (id, function) in (1..).zip(profile.functions.values()) {
            let StringId(name) = function.name;
            let StringId(file) = function.file;
            self.0.message(
                field::FUNCTION,
                &wire::Function {
                    id,
                    name: i64::from(name),
                    filename: i64::from(file),
                    start_line: i64::from(function.start_line),
                    ..Default::default()
                },
            )?;
        }
        for text in profile.strings.values() {
            self.0.bytes(field::STRING_TABLE, text.as_bytes())?;
        }
        self.0.number(field::TIME_NANOS, header.time_nanos)?;
        self.0.number(field::DURATION_NANOS, header.duration_nanos)?;
        self.0.message(field::PERIOD_TYPE, &period_type)?;
        self.0.number(field::PERIOD, header.period)?;
        for &comment in &comments {
            self.0.number(field::COMMENT, comment)?;
        }
        self.0.number(field::DEFAULT_SAMPLE_TYPE, sample_types[header.default_sample_type as usize].r#type)
    }

    fn sample(&mut self, profile: &Profile, key: SampleKey, values: Values, labels: &LabelKeys) -> io::Result<()> {
        let value = values.rounded();
        if value == [0; 4] {
            return Ok(());
        }
        let location_id = locations(profile.frames.values(), key.stack).collect();
        let label = labels.of(profile, key);
        self.0.message(field::SAMPLE, &wire::Sample { location_id, value: value.to_vec(), label })
    }
}

/// The ids of a stack's locations, the innermost first.
fn locations(frames: &[Frame], stack: Stack) -> impl Iterator<Item = u64> {
    let mut next = stack;
    std::iter::from_fn(move || {
        let frame = frames.get(next? as usize)?;
        next = frame.caller;
        Some(u64::from(frame.location) + 1)
    })
}

/// String table indices of the label keys.
struct LabelKeys {
    class: i64,
    age: i64,
    age_unit: i64,
}

impl LabelKeys {
    fn of(&self, profile: &Profile, key: SampleKey) -> Vec<wire::Label> {
        let text = |key, StringId(str)| wire::Label { key, str: i64::from(str), num: 0, num_unit: 0 };
        let class = key.class.map(|class| text(self.class, class));
        let age =
            key.age.map(|age| wire::Label { key: self.age, str: 0, num: i64::from(age), num_unit: self.age_unit });
        let pairs = key.labels.and_then(|LabelsId(id)| profile.label_sets.values().get(id as usize));
        let own = pairs.into_iter().flatten().map(|&(StringId(key), value)| text(i64::from(key), value));
        class.into_iter().chain(age).chain(own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::LabelSet;
    use crate::profile::Function;
    use flate2::read::GzDecoder;
    use prost::Message;
    use std::io::Read;

    /// The outermost message, declared independently of the streaming writer.
    #[derive(Clone, PartialEq, prost::Message)]
    struct Decoded {
        #[prost(message, repeated, tag = "1")]
        sample_type: Vec<ValueType>,
        #[prost(message, repeated, tag = "2")]
        sample: Vec<wire::Sample>,
        #[prost(message, repeated, tag = "4")]
        location: Vec<wire::Location>,
        #[prost(message, repeated, tag = "5")]
        function: Vec<wire::Function>,
        #[prost(string, repeated, tag = "6")]
        string_table: Vec<String>,
        #[prost(int64, tag = "10")]
        duration_nanos: i64,
        #[prost(int64, tag = "12")]
        period: i64,
        #[prost(int64, repeated, tag = "13")]
        comment: Vec<i64>,
        #[prost(int64, tag = "14")]
        default_sample_type: i64,
    }

    fn header() -> Header {
        Header {
            default_sample_type: DefaultType::default(),
            time_nanos: 1_700_000_000_000_000_000,
            duration_nanos: 5,
            period: 100,
            sample_type_names: SampleTypeNames::Ruby,
            comments: vec!["hello".into()],
        }
    }

    fn profile() -> Profile {
        let mut profile = Profile::new();
        let file = profile.string(&Arc::from("/app/a.rb"));
        let mut stack = None;
        for (name, line) in [("<main>", 9), ("A#b", 3)] {
            let name = profile.string(&Arc::from(name));
            let location = profile.location(Function { name, file, start_line: 1 }, line);
            stack = profile.extend(stack, location);
        }
        let class = Some(profile.string(&Arc::from("String")));
        let mut labels = LabelSet::default();
        labels.set("endpoint", Some("users#show"));
        let labels = Some(profile.labels(&labels, None));
        let values = Values { allocations: 1.4, allocated_bytes: 40.0, retained: 0.0, retained_bytes: 0.0 };
        profile.add(SampleKey { stack, class, age: Some(2), labels }, values);
        profile.add(SampleKey { stack, class, age: Some(2), labels }, values);
        profile
    }

    fn decode(bytes: &[u8]) -> Decoded {
        let mut plain = Vec::new();
        GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
        Decoded::decode(plain.as_slice()).unwrap()
    }

    #[test]
    fn a_profile_reads_back_as_written() {
        let decoded = decode(&encode(&mut profile(), &header(), 1).unwrap());
        let string = |index: i64| decoded.string_table[index as usize].as_str();
        assert_eq!(string(0), "");
        assert_eq!(string(decoded.default_sample_type), "retained_size");
        assert_eq!(decoded.comment.iter().map(|&id| string(id)).collect::<Vec<_>>(), ["hello"]);
        assert_eq!((decoded.duration_nanos, decoded.period), (5, 100));
        let names: Vec<_> = decoded.sample_type.iter().map(|t| (string(t.r#type), string(t.unit))).collect();
        assert_eq!(
            names,
            [
                ("allocations", "count"),
                ("allocations_size", "bytes"),
                ("retained_objects", "count"),
                ("retained_size", "bytes")
            ]
        );
        let sample = &decoded.sample[0];
        let lines: Vec<_> = sample
            .location_id
            .iter()
            .map(|&id| {
                let line = decoded.location[id as usize - 1].line[0];
                (string(decoded.function[line.function_id as usize - 1].name), line.line)
            })
            .collect();
        assert_eq!(lines, [("A#b", 3), ("<main>", 9)]);
        let labels: Vec<_> = sample.label.iter().map(|l| (string(l.key), string(l.str), l.num)).collect();
        assert_eq!(labels, [("class", "String", 0), ("gc_age", "", 2), ("endpoint", "users#show", 0)]);
    }

    #[test]
    fn equal_keys_are_added_before_they_are_rounded() {
        let decoded = decode(&encode(&mut profile(), &header(), 1).unwrap());
        assert_eq!(decoded.sample.len(), 1);
        assert_eq!(decoded.sample[0].value, [3, 80, 0, 0]);
    }

    #[test]
    fn equal_input_gives_equal_bytes() {
        assert_eq!(encode(&mut profile(), &header(), 6).unwrap(), encode(&mut profile(), &header(), 6).unwrap());
    }

    #[test]
    fn a_sample_that_rounds_to_nothing_is_left_out() {
        let mut profile = profile();
        profile.add(
            SampleKey { stack: None, class: None, age: None, labels: None },
            Values { allocations: 0.2, ..Values::default() },
        );
        assert_eq!(decode(&encode(&mut profile, &header(), 1).unwrap()).sample.len(), 1);
    }
}
