//! `Collector#retainers_data`, which `Collector#retainers` wraps.

use super::collector::{RubyCollector, check_failure};
use super::errors;
use super::memory::name_samples;
use super::ractors::on_main_ractor;
use crate::collector::{Place, Question, RetainersFailure};
use crate::vm::ractor;
use magnus::typed_data::Obj;
use magnus::{Error, RString, Ruby};
use std::time::Duration;

/// JSON, and a profile of the paths as gzipped pprof. The arguments are those of `Collector#retainers`, which has
/// checked them.
pub fn retainers_data(
    ruby: &Ruby,
    this: Obj<RubyCollector>,
    site: Option<String>,
    class: Option<String>,
    limit: usize,
    in_process: bool,
    timeout: f64,
) -> Result<(RString, RString), Error> {
    check_failure(ruby, &this)?;
    if !this.collector.was_started() {
        return Err(errors::not_started(ruby));
    }
    if !on_main_ractor(ruby)? {
        return Err(errors::retainers(ruby, ractor::BESIDE_OTHERS.to_owned()));
    }
    let timeout = Duration::try_from_secs_f64(timeout).unwrap_or(Duration::MAX);
    let question = Question { place: site.map(Place::new), class, limit, in_process, timeout };
    name_samples(ruby, this)?;
    let retainers = this.collector.retainers(ruby, &question).map_err(|failure| match failure {
        RetainersFailure::Flush(failure) => errors::flush(ruby, failure),
        RetainersFailure::Refused(reason) => errors::retainers(ruby, reason),
    })?;
    let json = ruby.enc_str_new(&retainers.json, ruby.utf8_encoding());
    Ok((json, ruby.str_from_slice(&retainers.pprof)))
}
