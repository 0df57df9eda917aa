//! `Collector#retainers_data`, which `Collector#retainers` wraps.

use super::collector::{RubyCollector, abandoned, check_failure, on_main_ractor};
use super::errors;
use crate::collector::mute::Mute;
use crate::collector::{Place, Question, RetainersFailure};
use crate::vm::{ractor, threads};
use magnus::typed_data::Obj;
use magnus::{Error, RString, Ruby};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// JSON, and a profile of the paths as gzipped pprof. The arguments are those of `Collector#retainers`, which has checked
/// them.
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
    if !on_main_ractor(ruby)? || in_process && ractor::others() {
        let reason = "the heap cannot be read beside other Ractors: ask again when they have ended";
        return Err(errors::retainers(ruby, reason.to_owned()));
    }
    let timeout = Duration::try_from_secs_f64(timeout).unwrap_or(Duration::MAX);
    let question = Question { place: site.map(Place::new), class, limit, in_process, timeout };
    let named = {
        let mutex = this.flushing().ok_or_else(|| errors::not_started(ruby))?;
        let _locked = threads::Locked::new(ruby.get_inner(mutex))?;
        let mute = Mute::new(threads::current_context());
        catch_unwind(AssertUnwindSafe(|| this.collector.name_samples(ruby, &mute)))
    };
    let Ok(named) = named else {
        this.collector.panicked("flush");
        return Err(abandoned(ruby, &this, "flush"));
    };
    named.map_err(|failure| errors::flush(ruby, failure))?;
    let retainers = this.collector.retainers(ruby, &question).map_err(|failure| match failure {
        RetainersFailure::Flush(failure) => errors::flush(ruby, failure),
        RetainersFailure::Refused(reason) => errors::retainers(ruby, reason),
    })?;
    let json = ruby.enc_str_new(&retainers.json, ruby.utf8_encoding());
    Ok((json, ruby.str_from_slice(&retainers.pprof)))
}
