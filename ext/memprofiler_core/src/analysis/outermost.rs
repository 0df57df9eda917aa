//! The tables of a profile, as they are written.

use super::decode::DecodeError;
use super::ids::Ids;
use super::wire_fields::{Field, fields};
use crate::pprof_message::{self as wire, field};

/// All fields but the samples, which can stand before what they refer to.
#[derive(Default)]
pub struct Outermost<'a> {
    pub sample_types: Vec<wire::ValueType>,
    pub mappings: Vec<wire::Mapping>,
    pub mapping_ids: Ids,
    pub locations: Vec<wire::Location>,
    pub location_ids: Ids,
    pub functions: Vec<wire::Function>,
    pub function_ids: Ids,
    pub strings: Vec<&'a [u8]>,
    pub drop_frames: i64,
    pub keep_frames: i64,
    pub time_nanos: i64,
    pub duration_nanos: i64,
    pub period_type: Option<wire::ValueType>,
    pub period: i64,
    pub comments: Vec<i64>,
    pub default_sample_type: i64,
    pub doc_url: i64,
}

impl<'a> Outermost<'a> {
    /// Reads them, and finds ids that are 0 or taken.
    pub fn read(plain: &'a [u8]) -> Result<Self, DecodeError> {
        let mut message = Self::default();
        for field in fields(plain) {
            message.field(field?)?;
        }
        Ok(message)
    }

    fn field(&mut self, field: Field<'a>) -> Result<(), DecodeError> {
        match field.number {
            field::SAMPLE_TYPE => self.sample_types.push(field.message("sample type", self.sample_types.len())?),
            field::MAPPING => {
                let mapping: wire::Mapping = field.message("mapping", self.mappings.len())?;
                note(&mut self.mapping_ids, &field, "mapping", mapping.id)?;
                self.mappings.push(mapping);
            }
            field::LOCATION => {
                let location: wire::Location = field.message("location", self.locations.len())?;
                note(&mut self.location_ids, &field, "location", location.id)?;
                self.locations.push(location);
            }
            field::FUNCTION => {
                let function: wire::Function = field.message("function", self.functions.len())?;
                note(&mut self.function_ids, &field, "function", function.id)?;
                self.functions.push(function);
            }
            field::STRING_TABLE => self.strings.push(field.bytes("string")?),
            field::DROP_FRAMES => self.drop_frames = field.number("drop_frames")?,
            field::KEEP_FRAMES => self.keep_frames = field.number("keep_frames")?,
            field::TIME_NANOS => self.time_nanos = field.number("time_nanos")?,
            field::DURATION_NANOS => self.duration_nanos = field.number("duration_nanos")?,
            field::PERIOD_TYPE => self.period_type = Some(field.message("period_type", 0)?),
            field::PERIOD => self.period = field.number("period")?,
            field::COMMENT => field.numbers("comment", &mut self.comments)?,
            field::DEFAULT_SAMPLE_TYPE => self.default_sample_type = field.number("default_sample_type")?,
            field::DOC_URL => self.doc_url = field.number("doc_url")?,
            _ => {}
        }
        Ok(())
    }
}

/// Notes the id of the next entry of a table.
fn note(ids: &mut Ids, field: &Field<'_>, what: &str, id: u64) -> Result<(), DecodeError> {
    let index = ids.len();
    if ids.push(id) {
        return Ok(());
    }
    let reason = if id == 0 { "has no id".into() } else { format!("id {id} is taken") };
    Err(field.error(&format!("{what} {index}"), reason))
}
