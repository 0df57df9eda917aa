//! `MemprofilerPprof::Error` and its subclasses.

use crate::collector::FlushFailure;
use magnus::value::{Lazy, ReprValue};
use magnus::{Error, ExceptionClass, Module, RModule, Ruby, Value};

static ERROR: Lazy<ExceptionClass> = Lazy::new(|ruby| class(ruby, "Error"));
static NOT_STARTED: Lazy<ExceptionClass> = Lazy::new(|ruby| class(ruby, "NotStartedError"));
static INTERNAL: Lazy<ExceptionClass> = Lazy::new(|ruby| class(ruby, "InternalError"));
static PROFILE: Lazy<ExceptionClass> = Lazy::new(|ruby| class(ruby, "ProfileError"));
static RACTOR: Lazy<ExceptionClass> = Lazy::new(|ruby| class(ruby, "RactorError"));
static RETAINERS: Lazy<ExceptionClass> = Lazy::new(|ruby| class(ruby, "RetainersError"));

/// Defines the classes.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let error = module.define_error("Error", ruby.exception_standard_error())?;
    module.define_error("NotStartedError", error)?;
    module.define_error("ProfileError", error)?;
    module.define_error("RactorError", error)?;
    module.define_error("RetainersError", error)?;
    module.define_error("InternalError", error)?;
    for lazy in [&ERROR, &NOT_STARTED, &INTERNAL, &PROFILE, &RACTOR, &RETAINERS] {
        Lazy::force(lazy, ruby);
    }
    Ok(())
}

fn class(ruby: &Ruby, name: &str) -> ExceptionClass {
    let module: Result<RModule, Error> = ruby.class_object().const_get("MemprofilerPprof");
    // `init` has defined them all; if a program removes the constant, it gets a plainer error.
    module.and_then(|module| module.const_get(name)).unwrap_or_else(|_| ruby.exception_runtime_error())
}

/// A `MemprofilerPprof::Error`.
pub fn error(ruby: &Ruby, message: String) -> Error {
    Error::new(ruby.get_inner(&ERROR), message)
}

/// A `MemprofilerPprof::NotStartedError`.
pub fn not_started(ruby: &Ruby) -> Error {
    Error::new(ruby.get_inner(&NOT_STARTED), "it was never started: call start first")
}

/// A `MemprofilerPprof::InternalError`: a panic in `place`, which is a bug.
pub fn internal(ruby: &Ruby, place: &'static str) -> Error {
    let message = format!("the collector switched itself off after a panic in its {place}; please report this bug");
    Error::new(ruby.get_inner(&INTERNAL), message)
}

/// The error that `flush` raises.
pub fn flush(ruby: &Ruby, failure: FlushFailure) -> Error {
    match failure {
        FlushFailure::Raised(exception) => exception,
        FlushFailure::Panicked(place) => internal(ruby, place),
        FlushFailure::NoMemory => {
            error(ruby, "there is no memory for a profile; what it would have had is in the next one".to_owned())
        }
        FlushFailure::Encoding(reason) => error(ruby, reason.to_string()),
    }
}

/// A `MemprofilerPprof::ProfileError`.
pub fn profile(ruby: &Ruby, message: String) -> Error {
    Error::new(ruby.get_inner(&PROFILE), message)
}

/// A `MemprofilerPprof::RactorError`.
pub fn ractor(ruby: &Ruby, message: &'static str) -> Error {
    Error::new(ruby.get_inner(&RACTOR), message)
}

/// A `MemprofilerPprof::RetainersError`.
pub fn retainers(ruby: &Ruby, message: String) -> Error {
    Error::new(ruby.get_inner(&RETAINERS), message)
}

/// A TypeError or ArgumentError that names the argument, the value and what is allowed.
pub fn argument(ruby: &Ruby, kind: Wrong, name: &str, value: Value, allowed: &str) -> Error {
    let class = match kind {
        Wrong::Type => ruby.exception_type_error(),
        Wrong::Value => ruby.exception_arg_error(),
    };
    Error::new(class, format!("{name} must be {allowed}, got {}", value.inspect()))
}

/// What is wrong with an argument.
#[derive(Debug, Clone, Copy)]
pub enum Wrong {
    /// Its class.
    Type,
    /// Its value.
    Value,
}
