//! The messages of proto/pprof.proto, except the outermost one, whose fields are read and written one by one. Field
//! numbers are pprof's public interface.

/// What one column of values means.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ValueType {
    /// Index of the name in the string table.
    #[prost(int64, tag = "1")]
    pub r#type: i64,
    /// Index of the unit in the string table.
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// One stack with its values.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sample {
    /// Locations, innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    /// One value per sample type.
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    /// Further facts about the sample.
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<Label>,
}

/// A key with a string, or with a number and its unit; all but the number are indices into the string table.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Label {
    /// The key.
    #[prost(int64, tag = "1")]
    pub key: i64,
    /// The string, or 0.
    #[prost(int64, tag = "2")]
    pub str: i64,
    /// The number.
    #[prost(int64, tag = "3")]
    pub num: i64,
    /// The number's unit.
    #[prost(int64, tag = "4")]
    pub num_unit: i64,
}

/// A part of the program.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Mapping {
    /// Not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The first address.
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    /// One past the last address.
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    /// Where in the file the first address lies.
    #[prost(uint64, tag = "4")]
    pub file_offset: u64,
    /// Index of the program's name in the string table.
    #[prost(int64, tag = "5")]
    pub filename: i64,
    /// Index into the string table of what distinguishes versions of the file.
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    /// Locations already have functions.
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    /// Functions already have file names.
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    /// Locations already have lines.
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    /// Locations already have their inlined functions.
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}

/// A place in the program.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Location {
    /// 1, 2, 3 … in table order.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The mapping, or 0.
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    /// The address of the code, or 0.
    #[prost(uint64, tag = "3")]
    pub address: u64,
    /// The function and line. With inlined functions there are several; the last is the caller of the others.
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
    /// Several places that could not be distinguished.
    #[prost(bool, tag = "5")]
    pub is_folded: bool,
}

/// A line of a function.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Line {
    /// The function.
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    /// The line in its file, from 1; 0 if unknown.
    #[prost(int64, tag = "2")]
    pub line: i64,
    /// The column in its line, from 1; 0 if unknown.
    #[prost(int64, tag = "3")]
    pub column: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Function {
    /// 1, 2, 3 … in table order.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Index of the name in the string table.
    #[prost(int64, tag = "2")]
    pub name: i64,
    /// Index of the linker's name in the string table. This gem leaves it empty: pprof would take it for a mangled
    /// name.
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    /// Index of the file in the string table.
    #[prost(int64, tag = "4")]
    pub filename: i64,
    /// The line where the function begins, from 1; 0 if unknown.
    #[prost(int64, tag = "5")]
    pub start_line: i64,
}

/// Field numbers of the outermost message.
pub mod field {
    #![allow(missing_docs, reason = "named as in proto/pprof.proto")]
    pub const SAMPLE_TYPE: u32 = 1;
    pub const SAMPLE: u32 = 2;
    pub const MAPPING: u32 = 3;
    pub const LOCATION: u32 = 4;
    pub const FUNCTION: u32 = 5;
    pub const STRING_TABLE: u32 = 6;
    pub const DROP_FRAMES: u32 = 7;
    pub const KEEP_FRAMES: u32 = 8;
    pub const TIME_NANOS: u32 = 9;
    pub const DURATION_NANOS: u32 = 10;
    pub const PERIOD_TYPE: u32 = 11;
    pub const PERIOD: u32 = 12;
    pub const COMMENT: u32 = 13;
    pub const DEFAULT_SAMPLE_TYPE: u32 = 14;
    pub const DOC_URL: u32 = 15;
}

/// Field numbers of a [`Sample`].
pub mod sample_field {
    #![allow(missing_docs, reason = "named as in proto/pprof.proto")]
    pub const LOCATION_ID: u32 = 1;
    pub const VALUE: u32 = 2;
    pub const LABEL: u32 = 3;
}

/// The key and value of the label of what was subtracted in a difference, as in `go tool pprof -diff_base`. The values
/// of such a sample are negated.
pub const BASE_LABEL: (&str, &str) = ("pprof::base", "true");
