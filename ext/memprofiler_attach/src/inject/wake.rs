//! How an idle main thread comes to look for postponed jobs: by Ruby's own handler of signals, called for one that
//! nobody handles. It is what the arrival of any signal does, without a signal.

use super::arch::Code;
use super::area::{self, Call};
use super::place::Place;
use super::target::Target;
use super::vm::Vm;
use crate::process::Status;
use ruby_layout::memory::Memory;

/// Signals that Ruby handles by its one handler by default; a program may have other handlers for some.
const HANDLED: [libc::c_int; area::MOST_ACTIONS] = [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1, libc::SIGHUP];
/// Signals that hardly any program handles.
const UNUSED: [libc::c_int; 4] = [libc::SIGURG, libc::SIGWINCH, libc::SIGIO, libc::SIGPWR];
#[cfg(target_arch = "aarch64")]
const NR_RT_SIGACTION: usize = 134;
#[cfg(not(target_arch = "aarch64"))]
const NR_RT_SIGACTION: usize = 13;
/// The size of the kernel's set of signals.
const SET_SIZE: usize = 8;

/// The calls that have the kernel write what handles signals to the area.
pub fn questions(place: &Place) -> Vec<Call> {
    let actions = (0..).map(|number| place.area + area::ACTIONS + area::ACTION_SIZE * number);
    let calls = HANDLED.iter().zip(actions).map(|(&signal, action)| Call {
        function: place.entry(|code: &Code| code.system_call),
        arguments: [NR_RT_SIGACTION, signal as usize, 0, action, SET_SIZE],
        result_to: None,
    });
    calls.collect()
}

/// The call of Ruby's handler, by the answers; None if it cannot be told.
pub fn call(target: &Target, place: &Place, vm: &Vm) -> Option<Call> {
    let handler = |number| target.word(place.area + area::ACTIONS + area::ACTION_SIZE * number).ok();
    let handlers: Vec<usize> = (0..HANDLED.len()).filter_map(handler).filter(|&found| vm.contains(found)).collect();
    let function = *handlers.iter().find(|found| handlers.iter().filter(|other| other == found).count() > 1)?;
    let status = Status::of(target.pid).ok()?;
    let used = ["SigCgt", "SigIgn"].map(|name| u64::from_str_radix(status.field(name), 16).unwrap_or(u64::MAX));
    let signal = UNUSED.into_iter().find(|signal| (used[0] | used[1]) >> (signal - 1) & 1 == 0)?;
    Some(Call { function, arguments: [signal as usize, 0, 0, 0, 0], result_to: None })
}
