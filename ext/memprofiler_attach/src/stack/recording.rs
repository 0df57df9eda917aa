//! Stacks that were seen again and again, as a profile.

use super::named::NamedFrame;
use memprofiler_core::interrupt::Interrupt;
use memprofiler_core::pprof;
use memprofiler_core::profile::{
    Builder, EMPTY_STACK, Function, Header, Label, LabelValue, Line, Location, Mapping, Row, Scheme, ValueType,
};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

const TYPES: [(&str, &str); 2] = [("samples", "count"), ("wall", "nanoseconds")];
/// gzip's, as in the profiles of the extension.
const LEVEL: u32 = 6;

/// A profile under construction.
pub struct Recording {
    header: Header,
    builder: Builder,
    rows: HashMap<Row, i64>,
}

impl Recording {
    /// An empty one, begun this long after 1970.
    pub fn new(time: Duration) -> Self {
        let header = Header {
            sample_types: TYPES.map(|(name, unit)| ValueType::new(name, unit)).into(),
            default_sample_type: TYPES[1].0.into(),
            time_nanos: nanoseconds(time),
            period_type: Some(ValueType::new(TYPES[1].0, TYPES[1].1)),
            ..Header::default()
        };
        let mut builder = Builder::new();
        let file = builder.string(&Arc::from("ruby"));
        builder.mapping(Mapping { start: 0, limit: 0, offset: 0, file, build_id: 0, has: [true, true, true, false] });
        Self { header, builder, rows: HashMap::new() }
    }

    /// The number of a stack, the outermost frame of which comes first.
    pub fn stack(&mut self, frames: &[NamedFrame]) -> u32 {
        let builder = &mut self.builder;
        frames.iter().fold(EMPTY_STACK, |caller, frame| {
            let name = builder.string_or(&frame.function.name, || frame.function.name.as_str().into());
            let file = builder.string_or(&frame.file, || Arc::from(&*frame.file));
            let start_line = frame.function.start_line.into();
            let function = builder.function(Function { name, system_name: 0, file, start_line });
            let lines = Arc::new([Line { function, line: frame.line.into(), column: 0 }]);
            let location = builder.location(&Location { mapping: Some(0), address: 0, folded: false, lines });
            builder.extend(caller, location)
        })
    }

    /// Counts a stack once more, with these labels.
    pub fn add(&mut self, stack: u32, labels: &[(&str, &str)]) {
        let builder = &mut self.builder;
        let mut text = |text: &str| builder.string_or(text, || text.into());
        let labels: Vec<Label> =
            labels.iter().map(|(key, value)| Label { key: text(key), value: LabelValue::Text(text(value)) }).collect();
        let (labels, scheme) = (builder.label_set(&labels), builder.scheme(Scheme::of(&self.header)));
        *self.rows.entry(Row::new(stack, labels, scheme)).or_default() += 1;
    }

    /// The profile as gzipped pprof: of `duration`, in which all stacks were read `readings` times.
    pub fn finish(mut self, duration: Duration, readings: i64, comments: Vec<Arc<str>>) -> io::Result<Vec<u8>> {
        let duration = nanoseconds(duration);
        self.header.duration_nanos = duration;
        self.header.period = duration / readings.max(1);
        self.header.comments = comments;
        let mut rows: Vec<(Row, i64)> = self.rows.into_iter().collect();
        rows.sort_unstable();
        let period = self.header.period;
        let values: Vec<i64> = rows.iter().flat_map(|&(_, count)| [count, count.saturating_mul(period)]).collect();
        let rows: Vec<Row> = rows.into_iter().map(|(row, _)| row).collect();
        let profile = self.builder.finish(&self.header, &rows, &values, &Interrupt::default());
        pprof::write_whole(&profile.map_err(io::Error::other)?, LEVEL)
    }
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
