//! Builds profiles from names, and shows profiles as names.

use crate::uninterrupted::{self as analysis, By, CombineError, Incompatible, Profile, Site};
use flate2::read::GzDecoder;
use memprofiler_core::pprof::message;
use prost::Message;
use std::io::Read;

pub const LIMIT: u64 = 1 << 30;

/// The outermost message, declared independently of the reader and the writer.
#[derive(Clone, PartialEq, Message)]
pub struct Pprof {
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<message::ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<message::Sample>,
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<message::Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<message::Location>,
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<message::Function>,
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<message::ValueType>,
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    #[prost(string, tag = "99")]
    pub from_the_future: String,
}

/// Writes messages in terms of names.
pub struct Maker(pub Pprof);

impl Maker {
    pub fn new(types: &[(&str, &str)], comments: &[&str]) -> Self {
        let mut maker = Self(Pprof { string_table: vec![String::new()], ..Pprof::default() });
        for &(name, unit) in types {
            let (r#type, unit) = (maker.string(name), maker.string(unit));
            maker.0.sample_type.push(message::ValueType { r#type, unit });
        }
        for comment in comments {
            let comment = maker.string(comment);
            maker.0.comment.push(comment);
        }
        maker
    }

    /// Gives the following frames the mapping that they have in this gem's profiles.
    pub fn of_ruby(mut self) -> Self {
        let filename = self.string("ruby");
        self.0.mapping.push(message::Mapping { id: 1, filename, ..Default::default() });
        self
    }

    pub fn string(&mut self, text: &str) -> i64 {
        let known = self.0.string_table.iter().position(|each| each == text);
        known.unwrap_or_else(|| {
            self.0.string_table.push(text.to_owned());
            self.0.string_table.len() - 1
        }) as i64
    }

    /// Frames are written `name file:line start`; the functions of an inlined location are separated by `|`, innermost
    /// first.
    pub fn sample(mut self, stack: &[&str], class: Option<&str>, value: &[i64]) -> Self {
        let location_id = stack.iter().rev().map(|location| self.location(location)).collect();
        let label = class.map(|class| message::Label {
            key: self.string("class"),
            str: self.string(class),
            ..Default::default()
        });
        self.0.sample.push(message::Sample { location_id, value: value.to_vec(), label: label.into_iter().collect() });
        self
    }

    /// Adds a label with a number to the last sample, as those are that tell windows.
    pub fn number(mut self, key: &str, num: i64) -> Self {
        let key = self.string(key);
        let sample = self.0.sample.last_mut().unwrap();
        sample.label.push(message::Label { key, num, ..Default::default() });
        self
    }

    fn location(&mut self, text: &str) -> u64 {
        let line = text.split('|').map(|frame| self.line(frame)).collect();
        let id = self.0.location.len() as u64 + 1;
        let mapping_id = self.0.mapping.len() as u64;
        self.0.location.push(message::Location { id, mapping_id, line, ..Default::default() });
        id
    }

    fn line(&mut self, text: &str) -> message::Line {
        let parts: Vec<&str> = text.split(' ').collect();
        let (file, line) = parts.get(1).map_or(("", "0"), |place| place.rsplit_once(':').unwrap());
        let function_id = self.0.function.len() as u64 + 1;
        let function = message::Function {
            id: function_id,
            name: self.string(parts[0]),
            filename: self.string(file),
            start_line: parts.get(2).map_or(0, |start| start.parse().unwrap()),
            ..Default::default()
        };
        self.0.function.push(function);
        message::Line { function_id, line: line.parse().unwrap(), column: 0 }
    }

    pub fn profile(&self) -> Profile {
        analysis::decode(&self.0.encode_to_vec(), LIMIT).unwrap()
    }
}

pub const RETAINED: [(&str, &str); 2] = [("retained_objects", "count"), ("retained_size", "bytes")];

pub fn maker() -> Maker {
    Maker::new(&RETAINED, &["greatest_weight=10"]).of_ruby()
}

pub fn maker_of_one() -> Maker {
    maker().sample(&["a /a.rb:1 1"], None, &[1, 40])
}

/// A program in which `fib` calls itself.
pub fn recursive() -> Profile {
    maker()
        .sample(&["<main> /app/a.rb:9 1", "fib /app/a.rb:3 2", "fib /app/a.rb:3 2"], Some("String"), &[100, 4000])
        .sample(&["<main> /app/a.rb:9 1", "fib /app/a.rb:3 2", "Class#new /app/a.rb:3"], Some("Object"), &[30, 1200])
        .sample(&["<main> /app/a.rb:9 1", "Class#new /app/a.rb:9"], Some("Object"), &[10, 400])
        .sample(&[], Some("Proc"), &[10, 800])
        .profile()
}

pub fn sites(profile: &Profile, by: By) -> Vec<(String, i64, i64)> {
    let mut sites: Vec<_> = analysis::top(profile, 0, by)
        .into_iter()
        .map(|Site { group, flat, cumulative }| (group.name.to_string(), flat.value, cumulative.value))
        .collect();
    sites.sort_by(|a, b| b.2.cmp(&a.2).then(a.0.cmp(&b.0)));
    sites
}

pub fn named(sites: &[(&str, i64, i64)]) -> Vec<(String, i64, i64)> {
    sites.iter().map(|&(name, flat, cumulative)| (name.to_owned(), flat, cumulative)).collect()
}

pub fn names(profile: &Profile) -> Vec<String> {
    analysis::folded(profile, 0).lines().map(str::to_owned).collect()
}

/// Why profiles do not match.
pub fn refused(error: CombineError) -> Incompatible {
    match error {
        CombineError::Incompatible(incompatible) => incompatible,
        CombineError::Interrupted(_) => panic!("nobody interrupts"),
    }
}

/// The message that is written for a profile.
pub fn written(profile: &Profile) -> Pprof {
    let mut plain = Vec::new();
    GzDecoder::new(&*analysis::write(profile, 1).unwrap()).read_to_end(&mut plain).unwrap();
    Pprof::decode(&*plain).unwrap()
}
