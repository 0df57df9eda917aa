//! `MemprofilerPprof::Faults.child`: work in a copy of the process, for specs.

use super::child_work::{self, Belongings};
use crate::ruby_api::errors;
use crate::vm::child::{self, Failure, Limits, Outcome};
use crate::vm::signals;
use magnus::scan_args::{get_kwargs, scan_args};
use magnus::{Error, Object, RHash, RModule, RString, Ruby, Symbol, Value, function};
use std::time::{Duration, Instant};

/// Defines the methods.
pub fn init(faults: RModule) -> Result<(), Error> {
    faults.define_singleton_method("child", function!(run, -1))?;
    faults.define_singleton_method("busy_in_malloc", function!(busy_in_malloc, 1))
}

/// `child(work, argument = "", wall: 240, memory: 64 MB)`: [answer, pause and elapsed time in seconds, attempts, bytes].
fn run(ruby: &Ruby, arguments: &[Value]) -> Result<(RString, f64, f64, u32, u64), Error> {
    let arguments = scan_args::<(Symbol,), (Option<String>,), (), (), RHash, ()>(arguments)?;
    let ((name,), (argument,)) = (arguments.required, arguments.optional);
    let keywords = get_kwargs::<_, (), (Option<f64>, Option<u64>), ()>(arguments.keywords, &[], &["wall", "memory"])?;
    let (wall, memory) = keywords.optional;
    let limits =
        Limits { wall: Duration::from_secs_f64(wall.unwrap_or(240.0)), memory: memory.unwrap_or(64 << 20), spare: 0 };
    let (name, argument) = (name.name()?.into_owned(), argument.unwrap_or_default());
    let mut own = Belongings::new();
    let began = Instant::now();
    match child::run(ruby, limits, |_| (), |pipe| child_work::perform(&name, &argument, &mut own, pipe)) {
        Ok(Outcome { bytes, pause, attempts, memory }) => {
            let elapsed = began.elapsed().as_secs_f64();
            Ok((ruby.str_from_slice(&bytes), pause.as_secs_f64(), elapsed, attempts, memory))
        }
        Err(Failure::Raised(error)) => Err(error),
        Err(Failure::Refused(message) | Failure::Lost(message)) => Err(errors::error(ruby, message)),
    }
}

/// Starts native threads that call malloc and free until the process ends.
fn busy_in_malloc(threads: usize) {
    for number in 0..threads {
        signals::with_all_blocked(|| std::thread::spawn(move || churn(number)));
    }
}

fn churn(mut state: usize) {
    let mut blocks = [std::ptr::null_mut(); 64];
    loop {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let block = &mut blocks[(state >> 33) % 64];
        // SAFETY: null, or a block of malloc's that is used nowhere else.
        unsafe {
            libc::free(*block);
            *block = libc::malloc((state >> 40) % 4096 + 1);
        }
    }
}
