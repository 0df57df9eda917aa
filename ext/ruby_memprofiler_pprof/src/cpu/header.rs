//! What a profile says about itself.

use super::Statistics;
use super::interval::{Interval, period_type, sample_types};
use crate::collector::{ruby_description, tag_comments};
use crate::vm::clock::nanoseconds_since_1970;
use magnus::{Error, Ruby};
use memprofiler_core::profile::Header;
use std::sync::Arc;
use std::time::SystemTime;

/// That of a profile of `interval`, which ends now, of a process with these tags.
pub fn header(
    ruby: &Ruby,
    statistics: &Statistics,
    interval: &Interval,
    tags: &[(String, String)],
) -> Result<Header, Error> {
    let mut comments = vec![
        format!("pid={}", std::process::id()),
        ruby_description(ruby)?,
        format!("ruby_memprofiler_pprof {}", env!("CARGO_PKG_VERSION")),
        format!("signal={}", statistics.options.signal),
    ];
    if statistics.signal_taken {
        comments.push("signal_taken=true: something else handles the signal, so ticks were lost".to_owned());
    }
    if statistics.refused > 0 {
        comments.push(format!(
            "refused_timers={}: the CPU time of these threads is in (native threads), or in (other) if they ended",
            statistics.refused
        ));
    }
    if statistics.lost_stacks > 0 {
        comments.push(format!("lost_stacks={}", statistics.lost_stacks));
    }
    comments.extend(tag_comments(tags));
    Ok(Header {
        default_sample_type: Arc::clone(&period_type().name),
        sample_types: sample_types(),
        time_nanos: nanoseconds_since_1970(SystemTime::now()),
        duration_nanos: i64::try_from(interval.nanoseconds).unwrap_or(i64::MAX),
        period_type: Some(period_type()),
        period: statistics.options.period.as_nanos() as i64,
        comments: comments.into_iter().map(Arc::from).collect(),
        ..Header::default()
    })
}
